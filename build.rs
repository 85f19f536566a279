//! Tells the program what it is built for, and from which commit if that can be known, and has a debug build start quickly.
//!
//! The commit is `CCM_COMMIT`, or what git says in a release build. While one works on the program it is left out: a commit would
//! build everything anew.

#![allow(clippy::disallowed_methods, reason = "a build script asks cargo and git")]

use std::{env, path::Path, process::Command};

/// Changes with every commit and every switch to another branch.
const LOG: &str = ".git/logs/HEAD";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CCM_COMMIT");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let given = env::var("CCM_COMMIT").ok().filter(|commit| !commit.is_empty());
    if is_release && given.is_none() && Path::new(LOG).exists() {
        println!("cargo::rerun-if-changed={LOG}");
    }
    let commit = given.or_else(|| if is_release { of_git() } else { None });
    let target = env::var("TARGET").unwrap_or_default();
    let build = commit.map(|commit| format!("{commit}, {target}")).unwrap_or(target);
    println!("cargo::rustc-env=CCM_BUILD={build}");
    // Tests start the program thousands of times, and a seventh of each start would go into relocations.
    if !is_release && env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|libc| libc == "gnu") {
        println!("cargo::rustc-link-arg=-no-pie");
    }
}

/// Returns the commit that is checked out; nothing without git or outside of a repository.
fn of_git() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| commit.trim().to_owned())
}

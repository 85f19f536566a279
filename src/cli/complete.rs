//! Shell completion: states and flags, and names that depend on the machine and the manifest.
//!
//! The script that `ccm completions` prints asks the program itself, with [`VARIABLE`] in its environment and the words so far
//! after `--`. An answer runs no command and expands no template: ccm reads names from files.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    path::Path,
};

use clap::{Arg, ArgMatches, ValueHint, builder::StyledStr};
use clap_complete::{
    CompleteEnv, Shell,
    engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter},
    env::Shells,
};

use crate::{
    declare::Declaration,
    document::{Entry, Value},
    host::{files, input},
    manifest,
    resource::{AnyCandidate, AnyType},
    types,
};

/// Names the shell that asks.
pub(super) const VARIABLE: &str = "CCM_COMPLETE";

/// No manifest, passwd or group file that is read for names is larger.
const LARGEST: u64 = 16 << 20;

/// Where units are, as systemd looks for them.
const UNIT_FOLDERS: [&str; 4] =
    ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

/// Answers a shell that asks what can come next. Returns whether one did.
pub(super) fn answer() -> Result<bool, clap::Error> {
    let folder = env::current_dir().ok();
    CompleteEnv::with_factory(super::command).var(VARIABLE).try_complete(env::args_os(), folder.as_deref())
}

/// Returns the script that has a shell ask.
pub(super) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        // It writes into memory, which does not fail.
        let _ = completer.write_registration(VARIABLE, "ccm", "ccm", "ccm", &mut script);
    }
    String::from_utf8_lossy(&script).into_owned()
}

/// Offers the resources and tags of the manifests that the command names.
pub(super) fn resources() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(names_in_manifests()))
}

/// Offers names of resources of this type.
pub(super) fn names(argument: Arg, kind: &dyn AnyType) -> Arg {
    match kind.name() {
        "file" | "archive" => argument.value_hint(ValueHint::AnyPath),
        "scaffold" => argument.value_hint(ValueHint::DirPath),
        kind => argument.add(ArgValueCandidates::new(move || candidates(names_of(kind)))),
    }
}

/// Offers names of resources of the type that the command names before.
pub(super) fn names_of_typed() -> ArgValueCompleter {
    let offered = |begun: &OsStr| {
        let kind = words_so_far().and_then(|matches| matches.get_one::<String>("type").cloned());
        match kind.as_deref() {
            Some("file" | "archive") => PathCompleter::any().complete(begun),
            Some("scaffold") => PathCompleter::dir().complete(begun),
            Some(kind) => {
                let begun = begun.to_string_lossy();
                candidates(names_of(kind).into_iter().filter(|name| name.starts_with(&*begun)).collect())
            }
            None => Vec::new(),
        }
    };
    ArgValueCompleter::new(offered)
}

/// Offers values of a property.
pub(super) fn values(argument: Arg, kind: &dyn AnyType, property: &str) -> Arg {
    match property {
        "provider" => {
            let kind = kind.name();
            argument.add(ArgValueCandidates::new(move || providers(kind)))
        }
        "owner" | "user" => argument.add(ArgValueCandidates::new(|| candidates(accounts("/etc/passwd")))),
        "group" | "groups" => argument.add(ArgValueCandidates::new(|| candidates(accounts("/etc/group")))),
        "unit" => argument.add(ArgValueCandidates::new(|| candidates(units()))),
        "cwd" | "extract_parent" | "home" => argument.value_hint(ValueHint::DirPath),
        "ca_file" => argument.value_hint(ValueHint::FilePath),
        "source" | "creates" | "target" => argument.value_hint(ValueHint::AnyPath),
        "shell" => argument.value_hint(ValueHint::ExecutablePath),
        _ => argument,
    }
}

fn providers(kind: &str) -> Vec<CompletionCandidate> {
    let providers = types::find(kind).map(AnyType::providers).unwrap_or_default();
    let described = |candidate: AnyCandidate| {
        CompletionCandidate::new(candidate.name).help(Some(StyledStr::from(candidate.summary)))
    };
    providers.into_iter().map(described).collect()
}

fn candidates(names: BTreeSet<String>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The names of what there is of a type on this machine.
fn names_of(kind: &str) -> BTreeSet<String> {
    match kind {
        "service" => units(),
        "user" => accounts("/etc/passwd"),
        "group" => accounts("/etc/group"),
        _ => BTreeSet::new(),
    }
}

/// The services that systemd has files of.
fn units() -> BTreeSet<String> {
    let names = UNIT_FOLDERS.iter().filter_map(|folder| files::names(Path::new(folder)).ok()).flatten();
    let service = |name: OsString| {
        let name = name.into_string().ok()?;
        name.strip_suffix(".service").filter(|name| !name.ends_with('@')).map(str::to_owned)
    };
    names.filter_map(service).collect()
}

/// The names in a file of accounts.
fn accounts(file: &str) -> BTreeSet<String> {
    let text = read(Path::new(file)).unwrap_or_default();
    let name = |line: &str| line.split_once(':').map(|(name, _)| name.to_owned());
    text.lines().filter_map(name).filter(|name| !name.starts_with(['#', '+', '-'])).collect()
}

fn names_in_manifests() -> BTreeSet<String> {
    let Some(matches) = words_so_far() else { return BTreeSet::new() };
    let given = matches.get_many::<String>("manifest").into_iter().flatten();
    given
        .flat_map(|manifest| in_manifest(Path::new(manifest)))
        .flat_map(|resource| selectors(&resource))
        .collect()
}

/// The resources in a manifest that can be read as it is.
fn in_manifest(path: &Path) -> Vec<Declaration> {
    let text = if path.is_dir() { read(&path.join("manifest.yaml")) } else { read(path) };
    text.and_then(|text| manifest::declarations_in(&text).ok()).unwrap_or_default()
}

/// The words by which `--only` and `--skip` select a resource. What a name with a template comes to is not known.
fn selectors(resource: &Declaration) -> Vec<String> {
    let is_plain = |text: &&str| !text.contains("{{") && !text.contains("${");
    let name = Some(resource.name.as_str()).filter(is_plain);
    let name = name.map(|name| format!("{}#{name}", resource.kind.name()));
    let tags = resource.properties.iter().filter(|entry| entry.key == "tags");
    let tags = tags.flat_map(|Entry { value, .. }| match &value.value {
        Value::Seq(items) => items.as_slice(),
        _ => std::slice::from_ref(value),
    });
    let tags = tags.filter_map(|tag| match &tag.value {
        Value::Scalar(tag) => Some(format!("tag:{}", tag.text)),
        _ => None,
    });
    name.into_iter().chain(tags).collect()
}

/// What the words that were typed say so far, for the innermost command.
fn words_so_far() -> Option<ArgMatches> {
    let words = env::args_os().skip_while(|word| word != "--").skip(1);
    let mut matches = super::command().ignore_errors(true).try_get_matches_from(words).ok()?;
    while let Some((_, inner)) = matches.remove_subcommand() {
        matches = inner;
    }
    Some(matches)
}

fn read(path: &Path) -> Option<String> {
    // Names are looked up from the root.
    let path = std::path::absolute(path).ok()?;
    String::from_utf8(input::read_file(&path, LARGEST).ok()?).ok()
}

//! `ccm man`: manual pages, generated from the command line, the types and [`tables`].

mod keys;
mod manifest;
#[cfg(test)]
mod reference;
mod roff;
mod tables;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::{Args, Command, ValueHint};
use clap_mangen::Man;

use self::{
    roff::{Page, tidy},
    tables::{EXIT_CODES, FILES, PLUGIN, VARIABLES},
};
use super::{Exit, failure::Failure, flags};
use crate::host::files::{self, Attributes};

/// When this version was released, as CHANGELOG.md says too.
const DATE: &str = "2026-11-16";

const SOURCE: &str = concat!("ccm ", env!("CARGO_PKG_VERSION"));

/// Arguments of `ccm man`.
#[derive(Args)]
#[command(after_help = "Example:\n  mkdir -p man1\n  ccm man man1")]
pub(super) struct Arguments {
    /// Existing directory, such as /usr/local/share/man/man1
    #[arg(value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

pub(super) fn run(Arguments { folder }: &Arguments) -> Result<Exit, Failure> {
    write_pages(folder).map_err(|error| {
        Failure::new(format!("cannot write manual pages into {}: {error}", folder.display()))
    })?;
    Ok(Exit::Success)
}

/// Writes every page atomically, without following links.
fn write_pages(folder: &Path) -> io::Result<()> {
    let folder = std::path::absolute(folder)?;
    for (name, text) in pages()? {
        let path = folder.join(name);
        files::replace(&path, Attributes::own(0o644), |out| out.write_all(text.as_bytes()))
            .map_err(io::Error::other)?;
    }
    Ok(())
}

/// Returns the pages of the program, its commands, its file formats, functions and facts, with the names of their files.
fn pages() -> io::Result<Vec<(String, String)>> {
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    let mut pages = vec![("ccm-manifest.5".to_owned(), manifest::page())];
    pages.extend(keys::pages());
    let mut ahead = vec![command];
    while let Some(command) = ahead.pop() {
        ahead.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
        pages.push(page(&command)?);
    }
    Ok(pages)
}

/// Returns the page of a command, with its variables and files.
fn page(command: &Command) -> io::Result<(String, String)> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let examples = examples(command);
    let reads = variables(command);
    let has_state = command.get_arguments().any(|argument| argument.get_long() == Some("state-dir"));
    let is_program = name == "ccm";
    let man = Man::new(command.clone()).title(name.to_uppercase()).date(DATE).source(SOURCE).manual("ccm");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().next().is_some() {
        man.render_options_section(&mut text)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut more = Page::default();
    more.section("EXIT STATUS");
    for (exit, meaning) in EXIT_CODES {
        more.term(&exit.code().to_string(), meaning);
    }
    if is_program || command.get_arguments().any(|argument| argument.get_long() == Some("format")) {
        more.paragraph(PLUGIN);
    }
    let variables =
        VARIABLES.iter().filter(|(variable, _)| is_program || reads.iter().any(|read| read == variable));
    more.terms("ENVIRONMENT", variables.copied());
    more.terms("FILES", FILES.iter().filter(|_| is_program || has_state).copied());
    more.help(&flags::with_spaces(&examples));
    more.section("SEE ALSO");
    more.see(if is_program { &["ccm-apply(1)", "ccm-manifest(5)"] } else { &["ccm(1)", "ccm-manifest(5)"] });
    let text = flags::with_spaces(&String::from_utf8_lossy(&text));
    Ok((man.get_filename(), tidy(&text) + &more.text()))
}

/// Returns the examples of a command, or those of its subcommands.
fn examples(command: &Command) -> String {
    let of = |command: &Command| command.get_after_help().map(ToString::to_string);
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    of(command).unwrap_or_else(|| shown.filter_map(of).collect::<Vec<_>>().join("\n\n"))
}

/// Returns the environment variables of the flags of a command.
fn variables(command: &Command) -> Vec<String> {
    let variables = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str());
    variables.map(str::to_owned).collect()
}

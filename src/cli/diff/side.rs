//! One side of a comparison.

use std::path::Path;

use crate::{
    cli::{failure::Failure, load_inputs::location},
    host::{
        files,
        input::{self, Limits},
        look,
        process::{Command, Exit},
        unpack::{ArchiveFormat, Compression},
    },
    manifest::{Bundle, IN_A_FOLDER, Location},
    run::Machine,
    vocabulary::has_scheme,
};

/// A manifest to compare.
pub(super) struct Side {
    location: Location,
    /// The files of a git revision, which exist as long as this.
    _tree: Option<Bundle>,
}

impl Side {
    pub(super) fn open(argument: &str, machine: &Machine) -> Result<Self, Failure> {
        let revision = argument.split_once(':').filter(|(revision, _)| !revision.is_empty());
        match revision.filter(|_| !has_scheme(argument) && !look::is_there(Path::new(argument))) {
            Some((revision, path)) => Self::at_revision(argument, revision, path, machine),
            None => Ok(Self { location: location(argument)?, _tree: None }),
        }
    }

    pub(super) fn location(&self) -> &Location {
        &self.location
    }

    /// Extracts a git revision, because a manifest can refer to any file of its repository.
    fn at_revision(name: &str, revision: &str, path: &str, machine: &Machine) -> Result<Self, Failure> {
        let failed = |reason: &dyn std::fmt::Display| Failure::new(format!("{name}: {reason}"));
        let here = std::env::current_dir().map_err(|error| failed(&error))?;
        let top = git(&["rev-parse", "--show-toplevel"], &here, machine).map_err(|error| failed(&error))?;
        let inside = match path.strip_prefix("./") {
            Some(_) => {
                let prefix =
                    git(&["rev-parse", "--show-prefix"], &here, machine).map_err(|error| failed(&error))?;
                format!("{prefix}{path}")
            }
            None => path.to_owned(),
        };
        let folder = machine.state.directory.make_folder("bundles").map_err(|error| failed(&error))?;
        let archive = folder.path().join(format!("revision-{}.tar", std::process::id()));
        let output = format!("--output={}", archive.display());
        // A revision that begins with a dash would be an option.
        let commit = format!("{revision}^{{commit}}");
        let commit = git(&["rev-parse", "--verify", "--end-of-options", &commit], &here, machine)
            .map_err(|error| failed(&error))?;
        let made = git(&["archive", "--format=tar", &output, &commit], Path::new(&top), machine);
        let opened = made.and_then(|_| input::open_file(&archive).map_err(|error| error.to_string()));
        let _ = files::remove_tree(&archive, &mut || Ok(()));
        let opened = opened.map_err(|error| failed(&error))?;
        let kind = ArchiveFormat::Tar(Compression::None);
        let tree = Bundle::unpack(&opened, kind, name, &machine.host, &machine.state)
            .map_err(|error| failed(&error))?;
        let mut at = tree.root().join(&inside);
        if ArchiveFormat::of(&inside).is_some() {
            return Ok(Self { location: Location::Path(at), _tree: Some(tree) });
        }
        if look::is_directory(&at) {
            at = at.join(IN_A_FOLDER);
        }
        let bytes = input::read_file(&at, Limits::default().document).map_err(|error| failed(&error))?;
        let folder = at.parent().unwrap_or(Path::new("/")).to_owned();
        let location = Location::Open { name: name.to_owned(), folder, bytes };
        Ok(Self { location, _tree: Some(tree) })
    }
}

/// Runs git and returns what it prints in one line.
fn git(arguments: &[&str], directory: &Path, machine: &Machine) -> Result<String, String> {
    let command = Command::new("git").arguments(arguments.iter().copied()).directory(directory);
    let finished =
        command.run(&machine.host.runner, &machine.host.interrupt).map_err(|error| error.to_string())?;
    if finished.exit != Exit::Code(0) {
        return Err(finished.stderr.text().trim().to_owned());
    }
    Ok(finished.stdout.text().trim_end_matches('\n').to_owned())
}

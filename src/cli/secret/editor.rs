//! An editor on a copy in memory: nothing decrypted reaches a disk.

use std::{
    env,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rustix::fs::statfs;

use super::{Failure, show};
use crate::{
    cli::prompt,
    document::{Diagnostics, Source},
    host::files::{self, Attributes},
    secrets::quoted,
};

/// Magic number of file systems in memory.
const TMPFS: u64 = 0x0102_1994;

/// A directory in memory that only the user can enter. It is removed with everything in it.
struct Private(PathBuf);

impl Private {
    fn create() -> Result<Self, Failure> {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let places = runtime.into_iter().chain([PathBuf::from("/dev/shm"), PathBuf::from("/run")]);
        for place in places.filter(|place| place.is_absolute()) {
            let is_memory =
                statfs(&place).is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| kind == TMPFS));
            let directory = place.join(format!("ccm-secret-{}", std::process::id()));
            if is_memory && std::fs::DirBuilder::new().mode(0o700).create(&directory).is_ok() {
                return Ok(Self(directory));
            }
        }
        Err(Failure::new("no file system in memory for the decrypted copy: mount a tmpfs on /dev/shm"))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // Memory is freed; the files of editors go with it.
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// Lets the user edit a text until it can be encrypted. Returns the encrypted text; `None` if nothing changed.
pub(super) fn edit(
    file: &Path,
    text: &str,
    seal: impl Fn(&str) -> Result<String, Result<Diagnostics, Failure>>,
) -> Result<Option<String>, Failure> {
    let directory = Private::create()?;
    let name = file.file_name().unwrap_or("document.yaml".as_ref());
    let path = directory.0.join(name);
    let failed =
        |error: &dyn std::fmt::Display| Failure::new(format!("cannot use the decrypted copy: {error}"));
    files::replace(&path, Attributes::own(0o600), |out| out.write_all(text.as_bytes()))
        .map_err(|error| failed(&error))?;
    let mut line = 1;
    loop {
        run(&path, line)?;
        let edited = zeroize::Zeroizing::new(std::fs::read_to_string(&path).map_err(|error| failed(&error))?);
        if *edited == text {
            return Ok(None);
        }
        let diagnostics = match seal(&edited) {
            Ok(sealed) => return Ok(Some(sealed)),
            Err(Err(failure)) => return Err(failure),
            Err(Ok(diagnostics)) => diagnostics,
        };
        let source = Source { name: file.display().to_string(), text: edited.as_str().to_owned() };
        let first = diagnostics.errors().find_map(|problem| problem.span);
        line = first.map_or(1, |span| source.line_column(span.start).0);
        show(&source, diagnostics);
        if !prompt::confirm("Edit again? [Y/n] ").unwrap_or(false) {
            return Err(Failure::new("the document is unchanged"));
        }
    }
}

/// Runs the editor on a line of a file.
fn run(path: &Path, line: usize) -> Result<(), Failure> {
    let named = |name: &str| env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor = named("SOPS_EDITOR").or_else(|| named("VISUAL")).or_else(|| named("EDITOR"));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let words = shell_words::split(&editor).map_err(|error| Failure::new(format!("EDITOR: {error}")))?;
    let Some((program, arguments)) = words.split_first() else { return Err(Failure::new("EDITOR is empty")) };
    let mut command = std::process::Command::new(program);
    command.args(arguments).env_remove("SOPS_AGE_KEY");
    let base = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    if line > 1 && ["vi", "vim", "nvim", "nano", "emacs", "ne", "joe"].contains(&base.as_str()) {
        command.arg(format!("+{line}"));
    }
    let status = command.arg(path).status();
    let status = status
        .map_err(|error| Failure::new(format!("cannot start the editor {}: {error}", quoted(program))))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("the editor failed ({status}): nothing was changed")))
    }
}

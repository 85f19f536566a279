//! The programs that targets run, one for each architecture.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

use crate::host::{files::hex, input, look};

/// Where the package `ccm-targets` stores programs: `ARCHITECTURE/ccm`.
const TARGETS: &str = "/usr/lib/ccm/targets";

/// A program for an architecture, as `uname -m` names it.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub(super) architecture: String,
    pub(super) sha256: String,
    pub(super) size: u64,
    file: PathBuf,
    /// Content, compressed or not, read when the first target needs it.
    content: Arc<[OnceLock<Content>; 2]>,
}

type Content = Result<Arc<Vec<u8>>, String>;

impl Binary {
    fn read(architecture: &str, file: &Path) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", file.display());
        let mut opened = input::open_file(file).map_err(|error| failed(&error))?;
        let (mut digest, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 256 * 1024]);
        loop {
            let count = opened.read(&mut buffer).map_err(|error| failed(&error))?;
            if count == 0 {
                break;
            }
            digest.update(&buffer[..count]);
            size += count as u64;
        }
        Ok(Self {
            architecture: architecture.to_owned(),
            sha256: hex(&digest.finalize()),
            size,
            file: file.to_owned(),
            content: Arc::default(),
        })
    }

    #[cfg(test)]
    pub(super) fn in_memory(architecture: &str, content: Vec<u8>) -> Self {
        let binary = Self {
            architecture: architecture.to_owned(),
            sha256: hex(&Sha256::digest(&content)),
            size: content.len() as u64,
            file: PathBuf::new(),
            content: Arc::default(),
        };
        let _ = binary.content[0].set(Ok(Arc::new(content)));
        binary
    }

    /// Returns the content as it is sent.
    pub(super) fn content(&self, gzip: bool) -> Content {
        let failed = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", self.file.display());
        self.content[usize::from(gzip)]
            .get_or_init(|| {
                let mut opened = input::open_file(&self.file).map_err(|error| failed(&error))?;
                let mut content = Vec::new();
                if gzip {
                    let mut packed = GzBuilder::new().mtime(0).write(&mut content, Compression::new(6));
                    io::copy(&mut opened, &mut packed)
                        .and_then(|_| packed.finish()?.flush())
                        .map_err(|error| failed(&error))?;
                } else {
                    opened.read_to_end(&mut content).map_err(|error| failed(&error))?;
                }
                Ok(Arc::new(content))
            })
            .clone()
    }
}

/// Returns the programs that targets can get. `given` takes precedence over the package, and the package over `own`.
pub(crate) fn binaries(given: &[(String, PathBuf)], own: &Path) -> Result<Vec<Binary>, String> {
    let mut files =
        BTreeMap::from([(rustix::system::uname().machine().to_string_lossy().into_owned(), own.to_owned())]);
    for architecture in look::names(Path::new(TARGETS)) {
        let file = Path::new(TARGETS).join(&architecture).join("ccm");
        if is_architecture(&architecture) && look::is_file(&file) {
            files.insert(architecture, file);
        }
    }
    for (architecture, file) in given {
        if !is_architecture(architecture) {
            return Err(format!(
                "--target-binary: `{architecture}` is not an architecture as `uname -m` prints it"
            ));
        }
        files.insert(architecture.clone(), file.clone());
    }
    files.iter().map(|(architecture, file)| Binary::read(architecture, file)).collect()
}

/// Returns whether a shell takes the text for one word and nothing else.
fn is_architecture(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

//! Files of this machine.

use std::{
    io::{self, Read, Write},
    path::PathBuf,
};

use super::{Answer, FetchError, Source, Version};
use crate::{
    host::{files::CHUNK, input, look},
    manifest::IN_A_FOLDER,
};

/// A file, or a folder that holds `manifest.yaml`.
pub(crate) struct LocalSource(pub(crate) PathBuf);

impl LocalSource {
    /// Returns the file that is read.
    pub(crate) fn file(&self) -> PathBuf {
        if look::is_directory(&self.0) { self.0.join(IN_A_FOLDER) } else { self.0.clone() }
    }
}

impl Source for LocalSource {
    /// Reads the file always: its dates may not tell that it changed.
    fn fetch(&mut self, _: Option<&Version>, into: &mut dyn Write) -> Result<Answer, FetchError> {
        let path = self.file();
        let failed = |reason: String| format!("cannot read {}: {reason}", path.display());
        let mut file = input::open_file(&path).map_err(|error| match error {
            input::InputError::Missing => FetchError::Missing(failed(error.to_string())),
            error => FetchError::Away(failed(error.to_string())),
        })?;
        let mut buffer = vec![0; CHUNK];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(Answer::New(None)),
                Ok(count) => into.write_all(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FetchError::Away(failed(error.to_string()))),
            }
        }
    }

    /// Local files are exempt: who can write them need not sign them.
    fn signature(&mut self) -> Result<Vec<u8>, FetchError> {
        Err(FetchError::Missing("files of this machine have no signature".to_owned()))
    }
}

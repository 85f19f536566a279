//! Observes files and their content.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::Path,
};

use md5::Md5;
use sha2::{Digest, Sha256, Sha512};

use super::{
    super::lens::{Lens, Seen, Unseen},
    Observer,
};
use crate::{
    checks::{Observed, Rule},
    host::{files::hex, input},
};

/// Maximum size of the content that is compared with patterns.
const LARGEST_TEXT: u64 = 64 << 20;

pub(super) fn observer<'a>(rule: &'a Rule, lens: &'a Lens<'a>) -> Observer<'a> {
    let path = lens.path(&rule.subject);
    let found = match fs::symlink_metadata(&path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    };
    Box::new(move |property| {
        let found = found.as_ref().map_err(|error| Unseen::Cannot(error.clone()))?;
        match (property, found) {
            ("exists", found) => Ok(found.is_some().into()),
            (_, None) => Err(Unseen::Not("there is no such file".to_owned())),
            (property, Some(metadata)) => look(property, &path, metadata, lens),
        }
    })
}

fn look(property: &str, path: &Path, metadata: &Metadata, lens: &Lens) -> Seen {
    let (uid, gid) = (metadata.uid(), metadata.gid());
    Ok(match property {
        "mode" => format!("{:04o}", metadata.mode() & 0o7777).as_str().into(),
        "size" => metadata.size().into(),
        "owner" => lens.host.users.user_name(uid).as_str().into(),
        "group" => lens.host.users.group_name(gid).as_str().into(),
        "uid" => u64::from(uid).into(),
        "gid" => u64::from(gid).into(),
        "filetype" => file_type(metadata).into(),
        "linked-to" => {
            let target = fs::read_link(path).map_err(|_| Unseen::Not("it is no link".to_owned()))?;
            target.to_string_lossy().as_ref().into()
        }
        "md5" => hash::<Md5>(path, lens)?,
        "sha256" => hash::<Sha256>(path, lens)?,
        "sha512" => hash::<Sha512>(path, lens)?,
        _ => text(path)?,
    })
}

fn file_type(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => "file",
        () if kind.is_dir() => "directory",
        () if kind.is_symlink() => "symlink",
        () if kind.is_socket() => "socket",
        () if kind.is_fifo() => "pipe",
        () if kind.is_block_device() => "block-device",
        () => "character-device",
    }
}

/// Opens a regular file, following links. Opening a device or pipe could block or have effects, so others are rejected.
fn open(path: &Path) -> Result<File, Unseen> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(Unseen::Not(format!("it is a {}, not a regular file", file_type(&metadata))));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Unseen::Not("the link leads nowhere".to_owned()));
        }
        _ => {}
    }
    input::open_file(path).map_err(|error| Unseen::Cannot(format!("it cannot be read: {error}")))
}

fn text(path: &Path) -> Seen {
    let mut bytes = Vec::new();
    let read = open(path)?.take(LARGEST_TEXT).read_to_end(&mut bytes);
    read.map_err(|error| Unseen::Cannot(format!("it cannot be read: {error}")))?;
    Ok(Observed::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

fn hash<H: Digest>(path: &Path, lens: &Lens) -> Seen {
    let (mut file, mut buffer, mut hash) = (open(path)?, vec![0; 64 << 10], H::new());
    loop {
        lens.tick()?;
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hash.finalize()).as_str().into()),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Unseen::Cannot(format!("it cannot be read: {error}"))),
        }
    }
}

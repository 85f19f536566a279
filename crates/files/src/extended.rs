//! Extended attributes that a new file keeps from the file that it replaces.
//!
//! Kept are the attributes that people and security modules put on the file (`user.*`, the `SELinux` label) and its
//! access list. Not kept is what speaks of the old content: capabilities (`security.capability`), signatures.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr, fsetxattr},
    io::Errno,
};

use super::{attributes::Attributes, entry::Entry, opening, trust, walk};

const ACCESS_LIST: &str = "system.posix_acl_access";
const DEFAULT_ACCESS_LIST: &str = "system.posix_acl_default";
const LABEL: &CStr = c"security.selinux";

/// Extended attributes and access list of a file that is replaced.
#[derive(Debug)]
pub(super) struct Kept {
    attributes: Vec<(CString, Vec<u8>)>,
    access_list: Option<Vec<u8>>,
}

impl Kept {
    /// Reads what is to be kept for a file that will have these attributes. Nothing where it cannot be read.
    pub(super) fn of(
        place: &walk::DirHandle,
        name: &std::ffi::OsStr,
        replaced: &Entry,
        attributes: Attributes,
    ) -> Kept {
        let mut kept = Kept { attributes: Vec::new(), access_list: None };
        // What a former owner wrote down is not carried over to somebody else's file: a list would let him in.
        if replaced.uid != attributes.uid && !trust::is_ours(replaced.uid) {
            return kept;
        }
        let Ok(old) = place.open(name, opening::READ) else {
            return kept;
        };
        if !Entry::of(&old, place.path()).is_ok_and(|entry| entry.is_same_file(replaced)) {
            return kept;
        }
        for name in names(&old).unwrap_or_default() {
            if (name.to_bytes().starts_with(b"user.") || name.as_c_str() == LABEL)
                && let Ok(value) = value(&old, &name)
            {
                kept.attributes.push((name, value));
            }
        }
        kept.access_list = value(&old, ACCESS_LIST).ok().and_then(|list| with_mode(list, attributes.mode));
        kept
    }

    pub(super) fn set_attributes(&self, file: impl AsFd) -> Result<(), Errno> {
        for (name, value) in &self.attributes {
            allowed(fsetxattr(&file, name, value, XattrFlags::empty()))?;
        }
        Ok(())
    }

    /// Gives a file the access list of the old one, or none when that had none: without this, it would have what the
    /// directory hands to new files. Owner and group have to be set before; the list carries the mode.
    pub(super) fn set_access_list(&self, file: impl AsFd) -> Result<(), Errno> {
        allowed(match &self.access_list {
            Some(list) => fsetxattr(&file, ACCESS_LIST, list, XattrFlags::empty()),
            None => fremovexattr(&file, ACCESS_LIST),
        })
    }
}

/// Gives a file the `SELinux` label of another one, if it has one and the system permits it.
pub(super) fn copy_label(from: impl AsFd, to: impl AsFd) {
    if let Ok(label) = value(from, LABEL) {
        let _ = fsetxattr(&to, LABEL, &label, XattrFlags::empty());
    }
}

/// Takes the access lists from a file or directory.
pub(super) fn drop_access_lists(descriptor: impl AsFd) -> Result<(), Errno> {
    allowed(fremovexattr(&descriptor, ACCESS_LIST))?;
    allowed(fremovexattr(&descriptor, DEFAULT_ACCESS_LIST))
}

/// Not every file system has every kind of attribute, and not every user may set them.
pub(super) fn allowed(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::NOTSUP | Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::INVAL) => Ok(()),
        result => result,
    }
}

pub(super) fn names(file: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut buffer = vec![0; flistxattr_query(file)?];
    let length = flistxattr(file, &mut buffer[..])?;
    buffer.truncate(length);
    Ok(buffer
        .split(|byte| *byte == 0)
        .filter_map(|name| CString::new(name).ok())
        .filter(|name| !name.is_empty())
        .collect())
}

pub(super) fn value<N: rustix::path::Arg + Copy>(file: impl AsFd, name: N) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; fgetxattr_query(&file, name)?];
    let length = fgetxattr(&file, name, &mut buffer[..])?;
    buffer.truncate(length);
    Ok(buffer)
}

/// An access list with the rights that a mode gives to owner, group class and others, as chmod would leave it: setting
/// it opens the file no further than the mode does. `None` for a list that says no more than a mode.
///
/// The layout is the kernel's: a version, then entries of tag, rights and id, all little-endian.
fn with_mode(mut list: Vec<u8>, mode: u32) -> Option<Vec<u8>> {
    const VERSION: [u8; 4] = [2, 0, 0, 0];
    const OWNER: u16 = 0x01;
    const MASK: u16 = 0x10;
    const OTHERS: u16 = 0x20;
    let entries = list.strip_prefix(&VERSION).filter(|entries| entries.len() % 8 == 0)?.len();
    let mut has_mask = false;
    for entry in list[VERSION.len()..][..entries].chunks_exact_mut(8) {
        let shift = match u16::from_le_bytes([entry[0], entry[1]]) {
            OWNER => 6,
            MASK => 3,
            OTHERS => 0,
            _ => continue,
        };
        has_mask |= shift == 3;
        entry[2] = u8::try_from(mode >> shift & 7).unwrap_or(0);
        entry[3] = 0;
    }
    has_mask.then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of these tags with these rights.
    fn list<const N: usize>(tags: [u16; N], rights: [u16; N]) -> Vec<u8> {
        let entry =
            |(tag, rights): (u16, u16)| [tag.to_le_bytes(), rights.to_le_bytes(), [1, 2], [3, 4]].concat();
        [vec![2, 0, 0, 0], tags.into_iter().zip(rights).flat_map(entry).collect()].concat()
    }

    #[test]
    fn only_what_a_file_system_or_a_user_cannot_have_is_no_error() {
        for errno in [Errno::NOTSUP, Errno::NODATA, Errno::PERM, Errno::ACCESS, Errno::INVAL] {
            assert_eq!(allowed(Err(errno)), Ok(()));
        }
        for result in [Ok(()), Err(Errno::IO), Err(Errno::NOSPC), Err(Errno::ROFS)] {
            assert_eq!(allowed(result), result);
        }
    }

    #[test]
    fn a_mode_says_what_a_list_gives_to_owner_mask_and_others() {
        // The owner, somebody, the group, the mask and others.
        let full = |rights| list([0x01, 0x02, 0x04, 0x10, 0x20], rights);
        for (before, mode, after) in [
            ([7, 7, 7, 7, 7], 0o641, [6, 7, 7, 4, 1]),
            ([0, 5, 6, 0, 0], 0o4753, [7, 5, 6, 5, 3]),
            ([0x107, 7, 7, 0x107, 0x107], 0o000, [0, 7, 7, 0, 0]),
        ] {
            assert_eq!(with_mode(full(before), mode), Some(full(after)), "{mode:o}");
        }
    }

    #[test]
    fn a_list_that_says_no_more_than_a_mode_or_cannot_be_read_is_none() {
        let full = list([0x01, 0x10], [7, 7]);
        let other_version = [&[3], &full[1..]].concat();
        let cut = full[..full.len() - 1].to_vec();
        for list in [list([0x01, 0x04, 0x20], [7, 7, 7]), other_version, cut, Vec::new()] {
            assert_eq!(with_mode(list, 0o640), None);
        }
        assert!(with_mode(full, 0o640).is_some());
    }
}

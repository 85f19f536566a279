//! Bundles that can be trusted: made the same way every time, signed with the keys that administrators have, and checked
//! before anything of them is unpacked.
//!
//! A bundle carries a [`Label`] with its name, version and expiry, which the signature covers like everything else. A
//! signature is the one that `ssh-keygen -Y sign -n ccm` makes ([`sshsig`]); who may sign is written in an allowed-signers
//! file ([`signers`]).

mod building;
mod contents;
mod key;
mod label;
mod layers;
mod signers;
mod signing;
mod sshsig;

use std::{fs::File, os::unix::fs::FileExt};

use crate::host::unpack::{ArchiveFormat, Compression};

pub(crate) use self::{
    building::{build, build_data},
    contents::Rules,
    label::{Label, NO_VERSION},
    layers::{facts_of_host, unread_layers},
    signers::{AllowedSigners, SignersError},
    signing::SigningKey,
    sshsig::{Signature, VerifyError},
};

/// The file in a bundle that holds its label.
pub(crate) const LABEL_FILE: &str = "ccm-bundle.json";

/// What a signature is made for; one that was made for mail or git is none here.
pub(crate) const NAMESPACE: &str = "ccm";

/// Signatures and keys are small.
pub(crate) const LARGEST_SIGNATURE: u64 = 64 * 1024;

/// Returns the archive format of a bundle: that of its name, or of its first bytes if the name has no known ending.
pub(crate) fn format_of(name: &str, file: &File) -> Option<ArchiveFormat> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    ArchiveFormat::of(name).or_else(|| {
        let mut start = [0; 2];
        let is_gzip = file.read_exact_at(&mut start, 0).is_ok() && start == GZIP;
        is_gzip.then_some(ArchiveFormat::Tar(Compression::Gzip))
    })
}

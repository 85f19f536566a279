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

pub(crate) use self::{
    building::build,
    contents::Rules,
    label::Label,
    layers::{facts_of_host, unread_layers},
    signers::AllowedSigners,
    signing::SigningKey,
    sshsig::{Signature, VerifyError},
};

/// The file in a bundle that holds its label.
pub(crate) const LABEL_FILE: &str = "ccm-bundle.json";

/// What a signature is made for; one that was made for mail or git is none here.
pub(crate) const NAMESPACE: &str = "ccm";

/// Signatures and keys are small.
pub(crate) const LARGEST_SIGNATURE: u64 = 64 * 1024;

//! How a run treats the machine.

/// Whether a run can change the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    Real,
    Noop,
}

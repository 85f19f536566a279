//! Limits that keep every document from using unbounded memory, time or stack.

use super::{Diagnostic, Node, Span, Value};

/// Maximum nesting of lists and maps. All recursion over trees relies on it.
pub(crate) const MAX_DEPTH: usize = 128;
const MAX_ALIASED_NODES: usize = 1_000_000;
const MAX_ALIASED_BYTES: usize = 100_000_000;

/// Rejects sources whose offsets do not fit into a [`Span`].
pub(super) fn check_length(text: &str) -> Result<(), Diagnostic> {
    match u32::try_from(text.len()) {
        Ok(_) => Ok(()),
        Err(_) => {
            Err(Diagnostic::error("document-too-large", "the document is larger than 4 GiB".to_owned()))
        }
    }
}

pub(super) fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::error("nested-too-deep", format!("lists and maps are nested more than {MAX_DEPTH} deep"))
        .at(span)
}

/// Cost of a node when an alias repeats it.
#[derive(Clone, Copy, Default)]
pub(super) struct Weight {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
    /// Levels of lists and maps; 0 for a scalar.
    pub(super) depth: usize,
}

impl Weight {
    pub(super) fn of(node: &Node) -> Weight {
        let mut weight = Weight { nodes: 1, bytes: 0, depth: 0 };
        let mut add = |child: &Node, key: &str| {
            let below = Weight::of(child);
            weight.nodes += below.nodes;
            weight.bytes += below.bytes + key.len();
            weight.depth = weight.depth.max(below.depth);
        };
        match &node.value {
            Value::Scalar(scalar) => return Weight { bytes: scalar.text.len(), ..weight },
            Value::Seq(items) => items.iter().for_each(|item| add(item, "")),
            Value::Map(entries) => entries.iter().for_each(|entry| add(&entry.value, &entry.key)),
        }
        weight.depth += 1;
        weight
    }
}

/// Total cost of repeated nodes.
#[derive(Default)]
pub(super) struct Copies {
    nodes: usize,
    bytes: usize,
}

impl Copies {
    /// Adds the cost of one more copy, or rejects it.
    pub(super) fn charge(&mut self, weight: Weight, span: Span) -> Result<(), Diagnostic> {
        self.nodes += weight.nodes;
        self.bytes += weight.bytes;
        if self.nodes <= MAX_ALIASED_NODES && self.bytes <= MAX_ALIASED_BYTES {
            return Ok(());
        }
        let message = format!(
            "anchors and aliases repeat more than {MAX_ALIASED_NODES} values or {MAX_ALIASED_BYTES} bytes"
        );
        Err(Diagnostic::error("aliases-too-large", message).at(span))
    }
}

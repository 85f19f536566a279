//! What one evaluation may use up, so that no expression runs or grows without end.

use crate::value::Value;

/// How many nodes may be evaluated and elements be looked at.
const STEPS: u64 = 5_000_000;
/// How many list elements and map entries may be produced.
const ELEMENTS: u64 = 1_000_000;
/// How many bytes of text may be produced.
const BYTES: u64 = 32 << 20;
/// How deep lists may hold lists, beyond what the text of an expression itself nests.
const DEPTH: usize = 100;

/// A limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exhausted {
    #[error("the expression takes more than {STEPS} steps")]
    Steps,
    #[error("the expression makes more than {ELEMENTS} list or map elements")]
    Elements,
    #[error("the expression makes more than {BYTES} bytes of text")]
    Bytes,
    #[error("the expression nests lists or maps more than {DEPTH} deep")]
    Depth,
}

#[derive(Debug)]
pub(crate) struct Budget {
    steps: u64,
    elements: u64,
    bytes: u64,
}

fn spend(left: &mut u64, amount: usize, problem: Exhausted) -> Result<(), Exhausted> {
    *left = left.checked_sub(amount as u64).ok_or(problem)?;
    Ok(())
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { steps: STEPS, elements: ELEMENTS, bytes: BYTES }
    }

    pub(crate) fn steps(&mut self, amount: usize) -> Result<(), Exhausted> {
        spend(&mut self.steps, amount, Exhausted::Steps)
    }

    pub(crate) fn elements(&mut self, amount: usize) -> Result<(), Exhausted> {
        spend(&mut self.elements, amount, Exhausted::Elements)
    }

    pub(crate) fn bytes(&mut self, amount: usize) -> Result<(), Exhausted> {
        spend(&mut self.bytes, amount, Exhausted::Bytes)
    }

    /// How many more bytes of text can be made.
    pub(crate) fn bytes_left(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Lends the steps that are left to work that counts them itself.
    pub(crate) fn with_steps<T>(&mut self, work: impl FnOnce(&mut u64) -> T) -> Result<T, Exhausted> {
        let result = work(&mut self.steps);
        if self.steps == 0 { Err(Exhausted::Steps) } else { Ok(result) }
    }

    /// Walks all of a value that expressions have built. Parts that are shared count each time, as they do for
    /// whoever prints it, so that a small expression cannot stand for an endless text.
    pub(crate) fn walk(&mut self, value: &Value) -> Result<(), Exhausted> {
        self.walk_within(value, DEPTH)
    }

    fn walk_within(&mut self, value: &Value, depth: usize) -> Result<(), Exhausted> {
        let depth_below = || depth.checked_sub(1).ok_or(Exhausted::Depth);
        match value {
            Value::List(items) => {
                self.steps(items.len())?;
                let below = depth_below()?;
                items.iter().try_for_each(|item| self.walk_within(item, below))
            }
            Value::Map(entries) => {
                self.steps(entries.len())?;
                let below = depth_below()?;
                entries.values().try_for_each(|item| self.walk_within(item, below))
            }
            _ => Ok(()),
        }
    }
}

//! What expressions may use up, so that none runs or grows without end.
//!
//! Steps, elements and bytes are counted for each evaluation. Memory is counted for all that share a [`Memory`]: what an
//! evaluation makes is given back when it ends, and whoever keeps the value takes what that needs.

use std::cell::Cell;
use std::rc::Rc;

use crate::template::LONGEST;
use crate::value::Value;

/// How many nodes may be evaluated and elements be looked at.
const STEPS: u64 = 5_000_000;
/// How many list elements and map entries may be produced.
const ELEMENTS: u64 = 1_000_000;
/// How many bytes of text may be produced.
const BYTES: u64 = 32 << 20;
/// How deep lists may hold lists, beyond what the text of an expression itself nests.
const DEPTH: usize = 100;
/// What all expressions that share one memory may hold, unless the host says otherwise.
const MEMORY: u64 = 512 << 20;
/// What an element of a list or an entry of a map is counted as, without its text.
const ELEMENT: u64 = size_of::<Value>() as u64;

/// A limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Exhausted {
    /// It would run for too long.
    #[error("the expression takes more than {STEPS} steps")]
    Steps,
    /// Lists and maps would have too many parts.
    #[error("the expression makes more than {ELEMENTS} list or map elements")]
    Elements,
    /// Too much text would be made on the way.
    #[error("the expression makes more than {BYTES} bytes of text")]
    Bytes,
    /// Lists and maps would be too deep inside each other.
    #[error("the expression nests lists or maps more than {DEPTH} deep")]
    Depth,
    /// The text of a template would be too long.
    #[error("the text is longer than {LONGEST} bytes")]
    Text,
    /// All expressions together would hold too much.
    #[error("expressions hold more than {limit} bytes together")]
    Memory {
        /// How much they may hold.
        limit: u64,
    },
}

/// The memory that expressions share. Clones count together.
#[derive(Debug, Clone)]
pub struct Memory(Rc<Account>);

#[derive(Debug)]
struct Account {
    limit: u64,
    used: Cell<u64>,
    exhausted: Cell<bool>,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(MEMORY)
    }
}

impl Memory {
    /// Makes a memory of so many bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self(Rc::new(Account { limit, used: Cell::new(0), exhausted: Cell::new(false) }))
    }

    /// Counts what a value holds as kept.
    ///
    /// # Errors
    ///
    /// When expressions would hold more than they may.
    pub fn keep(&self, value: &Value) -> Result<(), Exhausted> {
        self.take(size(value))
    }

    /// Returns how many bytes are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.0.limit.saturating_sub(self.0.used.get())
    }

    /// Returns whether something was asked for that there was no room for.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.0.exhausted.get()
    }

    pub(crate) fn take(&self, bytes: u64) -> Result<(), Exhausted> {
        let used = self.0.used.get().saturating_add(bytes);
        if used > self.0.limit {
            self.0.exhausted.set(true);
            return Err(Exhausted::Memory { limit: self.0.limit });
        }
        self.0.used.set(used);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.0.used.set(self.0.used.get().saturating_sub(bytes));
    }
}

/// What a value holds, in bytes, roughly. Parts that are shared count each time.
fn size(value: &Value) -> u64 {
    match value {
        Value::Str(text) => text.len() as u64,
        Value::List(items) => items.iter().map(|item| ELEMENT + size(item)).sum(),
        Value::Map(entries) => {
            entries.iter().map(|(key, value)| 2 * ELEMENT + key.len() as u64 + size(value)).sum()
        }
        Value::Secret(secret) => size(secret.reveal()),
        _ => 0,
    }
}

/// What one evaluation may still use. Its memory is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Budget {
    steps: u64,
    elements: u64,
    bytes: u64,
    memory: Memory,
    taken: u64,
}

fn spend(left: &mut u64, amount: usize, problem: Exhausted) -> Result<(), Exhausted> {
    *left = left.checked_sub(amount as u64).ok_or(problem)?;
    Ok(())
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.memory.give_back(self.taken);
    }
}

impl Budget {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { steps: STEPS, elements: ELEMENTS, bytes: BYTES, memory, taken: 0 }
    }

    pub(crate) fn steps(&mut self, amount: usize) -> Result<(), Exhausted> {
        spend(&mut self.steps, amount, Exhausted::Steps)
    }

    pub(crate) fn elements(&mut self, amount: usize) -> Result<(), Exhausted> {
        spend(&mut self.elements, amount, Exhausted::Elements)?;
        self.hold(amount as u64 * ELEMENT)
    }

    pub(crate) fn bytes(&mut self, amount: usize) -> Result<(), Exhausted> {
        spend(&mut self.bytes, amount, Exhausted::Bytes)?;
        self.hold(amount as u64)
    }

    /// Takes memory until the evaluation ends.
    pub(crate) fn hold(&mut self, bytes: u64) -> Result<(), Exhausted> {
        self.memory.take(bytes)?;
        self.taken += bytes;
        Ok(())
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
            Value::Secret(secret) => self.walk_within(secret.reveal(), depth),
            _ => Ok(()),
        }
    }
}

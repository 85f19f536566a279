//! Whole numbers that have a name: months and days of the week.

use super::Value;
use crate::dates;

/// A number that is read by its name and reckoned with as any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A month, counted from 1.
    Month(i8),
    /// A day of the week, counted from Sunday as 0.
    Weekday(i8),
}

impl Named {
    /// The number.
    #[must_use]
    pub fn number(self) -> i64 {
        let (Self::Month(number) | Self::Weekday(number)) = self;
        number.into()
    }

    /// The name, as people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Month(month) => dates::month_name(month),
            Self::Weekday(day) => dates::day_name(day),
        }
    }

    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Month(_) => "time.Month",
            Self::Weekday(_) => "time.Weekday",
        }
    }
}

impl Value {
    /// The whole number that this is, by a name or without.
    pub(crate) fn whole(&self) -> Option<i64> {
        match self.settled() {
            Self::Int(number) => Some(*number),
            Self::Named(named) => Some(named.number()),
            _ => None,
        }
    }
}

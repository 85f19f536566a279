//! A type that stores its parts in memory.

use std::{cell::RefCell, collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::resource::{
    self, AnyMember, AnyState, Before, Candidate, Change, Effects, Example, Grouping, Provider, ResourceType,
    Survey, Trigger, Watches,
};

thread_local!(static SHELF: RefCell<Shelf> = RefCell::default());

/// What parts there are, and what was done to them.
#[derive(Default)]
pub(super) struct Shelf {
    pub(super) parts: BTreeSet<String>,
    pub(super) log: Vec<String>,
    /// A group in which this is takes what comes before it, and fails.
    pub(super) jams_at: Option<String>,
    /// This does not stay where it is put.
    pub(super) slips: Option<String>,
    /// What becomes of the last of a group is not told.
    pub(super) is_forgetful: bool,
}

impl Shelf {
    fn put(&mut self, name: &str) {
        if self.slips.as_deref() != Some(name) {
            self.parts.insert(name.to_owned());
        }
    }
}

pub(super) fn shelf<T>(look: impl FnOnce(&mut Shelf) -> T) -> T {
    SHELF.with_borrow_mut(look)
}

/// Parts on a shelf.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Wanted {
    /// The part.
    pub(super) name: String,
}

impl resource::Properties for Wanted {
    fn ensure(&self) -> String {
        "present".to_owned()
    }

    fn watches(&self) -> Watches {
        Watches::default()
    }

    fn survey(&self) -> Option<&dyn Survey> {
        Some(self)
    }

    fn grouping(&self) -> Option<&dyn Grouping> {
        Some(self)
    }
}

impl Survey for Wanted {
    fn expect(&self, wanted: &[&dyn resource::Properties], on: &Provider) {
        let names = wanted.iter().filter_map(|wanted| wanted.get()).map(|want: &Self| want.name.as_str());
        let names = names.collect::<Vec<_>>().join(" ");
        shelf(|shelf| shelf.log.push(format!("{} expects {names}", on.of::<Part>().name())));
    }
}

impl Grouping for Wanted {
    fn most(&self) -> usize {
        3
    }

    fn enact_group(&self, group: &[AnyMember], _: &Provider, _: &Context) -> Result<Vec<AnyState>, Error> {
        let wants: Vec<&Self> = group.iter().filter_map(|member| member.wanted.get()).collect();
        shelf(|shelf| {
            let names: Vec<&str> = wants.iter().map(|want| want.name.as_str()).collect();
            shelf.log.push(format!("put together {}", names.join(" ")));
            for name in names {
                if shelf.jams_at.as_deref() == Some(name) {
                    return Err(Error::new("it does not fit"));
                }
                shelf.put(name);
            }
            let told = group.len() - usize::from(shelf.is_forgetful);
            Ok(wants.iter().take(told).map(|want| AnyState::of(Part::found_by(shelf, want))).collect())
        })
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    is_there: bool,
}

impl resource::State for Found {
    fn ensure(&self) -> String {
        if self.is_there { "present" } else { "absent" }.to_owned()
    }
}

pub(super) struct Put;

impl fmt::Display for Put {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("put")
    }
}

/// Somebody who puts parts on the shelf: there are several.
pub(super) trait Hand: Send + Sync {
    fn name(&self) -> &'static str;
}

pub(super) struct Left;

pub(super) struct Right;

impl Hand for Left {
    fn name(&self) -> &'static str {
        "left"
    }
}

impl Hand for Right {
    fn name(&self) -> &'static str {
        "right"
    }
}

pub(super) struct Part;

impl Part {
    fn found(want: &Wanted) -> Found {
        Found { is_there: shelf(|shelf| shelf.parts.contains(&want.name)) }
    }
}

impl ResourceType for Part {
    const NAME: &'static str = "part";
    const EXAMPLES: &'static [Example] = &[];
    const PROVIDERS: &'static [Candidate<Self>] = &[
        Candidate { name: "left", summary: "the left hand.", make: |_| Ok(Box::new(Left)) },
        Candidate { name: "right", summary: "the right hand.", make: |_| Ok(Box::new(Right)) },
    ];

    type Properties = Wanted;
    type State = Found;
    type Action = Put;
    type Provider = dyn Hand;

    fn inspect(want: &Wanted, _: &dyn Hand, _: &Context) -> Result<Found, Error> {
        Ok(Self::found(want))
    }

    fn compare(want: &Wanted, have: &Found, _: Trigger) -> Result<Option<Change<Put>>, Error> {
        let slips = shelf(|shelf| shelf.slips.as_ref() == Some(&want.name));
        let differences = slips.then(|| Difference::between("place", "the floor", "the shelf"));
        let change = Change { action: Put, differences: differences.into_iter().collect(), refreshes: false };
        Ok((!have.is_there).then_some(change))
    }

    fn effects(_: &Wanted, _: &Found, _: &Put, _: &Context) -> Effects {
        Effects::default()
    }

    fn before(_: &Wanted, _: &Found, _: &Put) -> Before {
        Before::Paths
    }

    fn enact(want: &Wanted, _: &Found, _: Put, _: &dyn Hand, _: &Context) -> Result<Found, Error> {
        shelf(|shelf| {
            shelf.log.push(format!("put {}", want.name));
            if shelf.jams_at.as_ref() == Some(&want.name) {
                return Err(Error::new("it does not fit"));
            }
            shelf.put(&want.name);
            Ok(Self::found_by(shelf, want))
        })
    }
}

impl Part {
    fn found_by(shelf: &Shelf, want: &Wanted) -> Found {
        Found { is_there: shelf.parts.contains(&want.name) }
    }
}

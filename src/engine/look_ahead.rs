//! Reading the state of resources before their turns.
//!
//! Looking changes nothing, so while one resource is dealt with, other threads look at those that follow. What they saw
//! counts only if nothing at all was done since they began: any action, however unrelated, throws it away. Names alone do not
//! tell what an action touched; links, files with several names and mounts lead elsewhere. So what comes of a run is what
//! would have come of it had each resource been looked at in its turn.
//!
//! Only types that say so are looked at ahead, and no further than the next resource of another type: its turn may run
//! something. A window is looked at by as many threads as there are processors, this one among them; while its resources have
//! their turns, others look at the window that follows.

use std::{
    cell::RefCell,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, Scope, ScopedJoinHandle},
};

use rustix::thread::sched_getaffinity;

use super::{Place, RunMode, Selected};
use crate::{
    host::Host,
    resource::{AnyState, Context, History, Moment, Prediction, ReadAhead as Ahead, Resource},
    state::LocalState,
};

/// How far to look ahead, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadAhead {
    /// Each resource is looked at in its turn.
    None,
    /// Some are looked at before.
    Windows(Windows),
}

/// The sizes of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// With fewer resources to come, to start a thread takes longer than to look at them.
    pub(crate) least: usize,
    /// The first window has this size, and each that proves right is followed by one of twice the size,
    pub(crate) first: usize,
    /// up to this one.
    pub(crate) most: usize,
    /// After something was done, so many resources in a row have to be found as they should be.
    pub(crate) calm: usize,
}

impl ReadAhead {
    /// What serves best on a usual machine.
    pub(crate) const USUAL: Self = Self::Windows(Windows { least: 32, first: 64, most: 512, calm: 16 });
}

/// What was seen of a resource before its turn.
pub(super) struct Sight {
    pub(super) state: AnyState,
    pub(super) warnings: Vec<String>,
}

/// What a thread needs to look at resources.
#[derive(Clone, Copy)]
struct Lookout<'a> {
    host: &'a Host,
    state: &'a LocalState,
    working_directory: &'a Path,
}

impl Lookout<'_> {
    fn look(self, wanted: &dyn Ahead) -> Option<Sight> {
        let (prediction, history) = (RefCell::<Prediction>::default(), History::default());
        let mut silent = |_: &str| {};
        let Self { host, state, working_directory } = self;
        let cx = Context::new(host, state, &prediction, working_directory, None, &mut silent)
            .within(RunMode::Real, &history);
        // What is wrong with it is told in its turn.
        let state = wanted.look_ahead(&cx).ok()?;
        Some(Sight { state, warnings: cx.into_warnings() })
    }
}

/// Consecutive resources that are looked at together.
struct Window<'s, 'a> {
    first: usize,
    /// When the first of them was looked at.
    moment: Moment,
    sights: Arc<Sights<'a>>,
    threads: Vec<ScopedJoinHandle<'s, ()>>,
}

struct Sights<'a> {
    lookout: Lookout<'a>,
    /// Those that are not to be looked at ahead are left out.
    wanted: Vec<Option<&'a dyn Ahead>>,
    seen: Vec<OnceLock<Option<Sight>>>,
    /// The next to be looked at.
    next: AtomicUsize,
}

impl Sights<'_> {
    /// Looks at resources as long as there are some that nobody looks at.
    fn look(&self) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let (Some(wanted), Some(seen)) = (self.wanted.get(at), self.seen.get(at)) else { return };
            let _ = seen.set(wanted.and_then(|wanted| self.lookout.look(wanted)));
        }
    }

    /// Keeps everybody from looking at more.
    fn abandon(&self) {
        self.next.store(self.wanted.len(), Ordering::Relaxed);
    }
}

impl Window<'_, '_> {
    fn covers(&self, index: usize) -> bool {
        (self.first..self.first + self.sights.wanted.len()).contains(&index)
    }

    /// Waits until all have been looked at, and lends a hand.
    fn complete(&mut self) {
        self.sights.look();
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Looks at the resources of one manifest before their turns.
pub(super) struct LookAhead<'s, 'e, 'a> {
    threads: &'s Scope<'s, 'e>,
    windows: Option<Windows>,
    lookout: Lookout<'a>,
    resources: &'a [Resource],
    selected: &'a Selected,
    /// The window whose resources have their turns, and the one after it.
    current: Option<Window<'s, 'a>>,
    next: Option<Window<'s, 'a>>,
    /// How large the next window is.
    size: usize,
    /// How many resources in a row needed nothing.
    calm: usize,
    moment: Moment,
}

impl<'s, 'a: 's> LookAhead<'s, '_, 'a> {
    pub(super) fn new<'e>(
        threads: &'s Scope<'s, 'e>,
        place: &Place<'a>,
        host: &'a Host,
        state: &'a LocalState,
        now: Moment,
    ) -> LookAhead<'s, 'e, 'a> {
        let windows = match place.settings.read_ahead {
            // What a dry run would find depends on what it would have done.
            ReadAhead::Windows(windows) if place.settings.may_change() => Some(windows),
            _ => None,
        };
        LookAhead {
            threads,
            windows,
            lookout: Lookout { host, state, working_directory: &place.manifest.working_directory },
            resources: &place.manifest.resources,
            selected: place.selected,
            current: None,
            next: None,
            size: windows.map_or(0, |windows| windows.first),
            calm: windows.map_or(0, |windows| windows.calm),
            moment: now,
        }
    }

    /// Takes what was seen of a resource whose turn has come, if it still counts.
    pub(super) fn take(&mut self, index: usize, now: Moment) -> Option<Sight> {
        let windows = self.windows?;
        if now == self.moment {
            self.calm = self.calm.saturating_add(1);
        } else {
            (self.moment, self.calm, self.size) = (now, 0, windows.first);
            self.forget();
        }
        if !self.current.as_ref().is_some_and(|window| window.covers(index)) {
            self.current = self.next.take().filter(|window| window.covers(index));
            if self.current.is_none() && self.calm >= windows.calm {
                self.current = self.begin(index, now);
            }
            if let Some(window) = &mut self.current {
                window.complete();
                let end = window.first + window.sights.wanted.len();
                self.size = (2 * self.size).min(windows.most);
                self.next = self.begin(end, now);
            }
        }
        let window = self.current.as_mut().filter(|window| window.moment == now)?;
        let at = index - window.first;
        Arc::get_mut(&mut window.sights)?.seen.get_mut(at)?.take()?
    }

    /// Begins to look at the resources from an index on, if that is worth a thread.
    fn begin(&self, first: usize, moment: Moment) -> Option<Window<'s, 'a>> {
        let windows = self.windows?;
        let resources = self.resources.get(first..)?.iter().take(self.size);
        let wanted: Vec<Option<&'a dyn Ahead>> = resources
            .map_while(|resource| {
                let ahead = resource.wanted.read_ahead().filter(|_| resource.included.is_none())?;
                Some(self.may_come(resource).then_some(ahead))
            })
            .collect();
        let helpers = processors().saturating_sub(1).min(wanted.len() / windows.least);
        if helpers == 0 {
            return None;
        }
        let seen = wanted.iter().map(|_| OnceLock::new()).collect();
        let sights = Arc::new(Sights { lookout: self.lookout, wanted, seen, next: AtomicUsize::new(0) });
        let start = |_| {
            let sights = Arc::clone(&sights);
            thread::Builder::new().spawn_scoped(self.threads, move || sights.look())
        };
        // Where there can be no more threads, this one does all the work.
        let threads = (0..helpers).map(start).map_while(Result::ok).collect();
        Some(Window { first, moment, sights, threads })
    }

    /// Whether the turn of a resource will come, as far as it can be told, and with the properties that are known.
    fn may_come(&self, resource: &Resource) -> bool {
        resource.common.control.is_none()
            && resource.common.timeout.is_none()
            && !resource.is_late()
            && !resource.is_sensitive()
            && self.selected.contains(resource)
    }

    /// Throws away what was seen.
    fn forget(&mut self) {
        for window in [self.current.take(), self.next.take()].into_iter().flatten() {
            window.sights.abandon();
        }
    }
}

impl Drop for LookAhead<'_, '_, '_> {
    fn drop(&mut self) {
        for window in [&self.current, &self.next].into_iter().flatten() {
            window.sights.abandon();
        }
    }
}

/// On how many processors this program may run.
fn processors() -> usize {
    sched_getaffinity(None).map_or(1, |set| usize::try_from(set.count()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, rc::Rc};

    use super::*;
    use crate::{
        declare::{Completeness, Declaration},
        document::{Diagnostics, Source, Span, Value},
        engine::{Settings, tests},
        resource::{Effects, Manifest},
        state::StateDirectory,
        types,
    };

    /// Files that are not to be there, and are not.
    fn files(count: usize) -> Vec<Resource> {
        let source = Source { name: "test".to_owned(), text: "ensure: absent".to_owned() };
        let Value::Map(properties) = crate::document::parse(&source).unwrap().value else { unreachable!() };
        let kind = types::find("file").unwrap();
        let file = |number| {
            let name = format!("/no-such-directory/{number}");
            let declaration = Declaration::new(kind, name, Span::default(), properties.clone());
            declaration.resolve(Completeness::Whole, &mut Diagnostics::default()).unwrap()
        };
        (0..count).map(file).collect()
    }

    #[test]
    fn what_follows_is_seen_ahead_until_something_is_done() {
        if processors() < 2 {
            // Nobody looks ahead where it would only delay the others.
            return;
        }
        let (host, state) = (tests::host(), LocalState::at(StateDirectory::none()));
        let source = Source { name: String::new(), text: String::new() };
        let manifest = Manifest::of(files(6), source, PathBuf::from("/"), tests::scope());
        let place = Place {
            manifest: &manifest,
            selected: &Selected::default(),
            scope: tests::scope(),
            settings: Settings {
                read_ahead: ReadAhead::Windows(Windows { least: 1, first: 2, most: 4, calm: 2 }),
                ..tests::settings(RunMode::Real)
            },
            prediction: Rc::new(RefCell::<Prediction>::default()),
            within: Vec::new(),
        };
        let mut history = History::default();
        thread::scope(|threads| {
            let mut ahead = LookAhead::new(threads, &place, &host, &state, history.now());
            for index in 0..3 {
                let sight = ahead.take(index, history.now());
                assert_eq!(sight.map(|sight| sight.state.ensure()).as_deref(), Some("absent"), "{index}");
            }
            history.record(Effects::default());
            let seen = [3, 4, 5].map(|index| ahead.take(index, history.now()).is_some());
            assert_eq!(seen, [false, false, true], "it has to be calm again first");
        });
    }

    #[test]
    fn what_is_abandoned_is_looked_at_no_more() {
        let (host, state) = (tests::host(), LocalState::at(StateDirectory::none()));
        let (resources, working_directory) = (files(3), PathBuf::from("/"));
        let lookout = Lookout { host: &host, state: &state, working_directory: &working_directory };
        for (is_abandoned, expected) in [(false, 3), (true, 0)] {
            let sights = Sights {
                lookout,
                wanted: resources.iter().map(|resource| resource.wanted.read_ahead()).collect(),
                seen: resources.iter().map(|_| OnceLock::new()).collect(),
                next: AtomicUsize::new(0),
            };
            if is_abandoned {
                sights.abandon();
            }
            sights.look();
            assert_eq!(sights.seen.iter().filter(|seen| seen.get().is_some()).count(), expected);
        }
    }
}

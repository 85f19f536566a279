//! What the resources of a manifest depend on, as it was when they were taken in.

use std::{
    fmt::Write,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
};

use crate::{resource::Watches, vocabulary::Reference};

/// The resources of a manifest. There may be many, and an agent that waits needs them only to name those that drifted: so
/// their names are in one piece.
#[derive(Default)]
pub(super) struct Wanted {
    /// `type#name` of one after the other.
    names: String,
    /// Where each ends.
    ends: Vec<u32>,
    /// Tells whether others depend on the same.
    digest: u64,
    /// How often they were taken in since something moved on the way to them.
    times: u8,
}

impl Wanted {
    pub(super) fn of<'r>(folder: &Path, resources: impl Iterator<Item = (Reference, &'r Watches)>) -> Self {
        let (mut names, mut ends) = (String::new(), Vec::new());
        let mut hasher = DefaultHasher::new();
        folder.hash(&mut hasher);
        for (reference, watches) in resources {
            // Writing to a string does not fail.
            let _ = write!(names, "{reference}");
            ends.push(u32::try_from(names.len()).unwrap_or(u32::MAX));
            watches.hash(&mut hasher);
        }
        names.shrink_to_fit();
        ends.shrink_to_fit();
        Self { names, ends, digest: hasher.finish(), times: 0 }
    }

    /// Puts others in its place, unless they are the same and were taken in twice: the second time all directories were
    /// watched already, so that what moves from then on is told.
    pub(super) fn is_replaced_by(&mut self, others: Self) -> bool {
        let is_same = self.digest == others.digest && self.names == others.names && self.ends == others.ends;
        let times = if is_same { self.times } else { 0 };
        if times < 2 {
            *self = Self { times: times + 1, ..others };
        }
        times < 2
    }

    /// Has them taken in again: directories or links may lead elsewhere than they did.
    pub(super) fn outdate(&mut self) {
        self.times = 0;
    }

    /// Returns the resource at a place.
    pub(super) fn resource(&self, place: u32) -> Option<Reference> {
        let place = usize::try_from(place).ok()?;
        let end = *self.ends.get(place)? as usize;
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.names.get(begin..end)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_found_by_their_places() {
        let names = ["file#/etc/motd", "service#é", "exec#a#b"];
        let watches = Watches::default();
        let wanted =
            Wanted::of(Path::new("/"), names.map(|name| (name.parse().unwrap(), &watches)).into_iter());
        let found = (0..4).map(|place| wanted.resource(place).map(|found| found.to_string()));
        assert!(found.eq([
            Some(names[0].to_owned()),
            Some(names[1].to_owned()),
            Some(names[2].to_owned()),
            None
        ]));
    }

    #[test]
    fn the_same_are_taken_in_twice_and_others_each_time() {
        let on = |path: &str| Watches { paths: vec![path.into()], ..Watches::default() };
        let one = |folder: &str, name: &str, watches: &Watches| {
            Wanted::of(Path::new(folder), [(name.parse().unwrap(), watches)].into_iter())
        };
        let mut wanted = Wanted::default();
        let mut replaced = |folder, name, path| wanted.is_replaced_by(one(folder, name, &on(path)));
        assert_eq!([(); 4].map(|()| replaced("/a", "file#x", "x")), [true, true, false, false]);
        for (folder, name, path) in [("/b", "file#x", "x"), ("/b", "file#y", "x"), ("/b", "file#y", "y")] {
            assert_eq!([(); 3].map(|()| replaced(folder, name, path)), [true, true, false]);
        }
        wanted.outdate();
        assert!(wanted.is_replaced_by(one("/b", "file#y", &on("y"))));
    }
}

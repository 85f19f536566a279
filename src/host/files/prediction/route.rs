//! The way to a path as it would be: the rules of the real walk over what is predicted.

use std::{
    collections::VecDeque,
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{
    super::{
        entry::{self, Entry, FileKind},
        error::Problem,
        trust::Trust,
        walk,
    },
    Known, Left, Prediction, of,
};

/// How far a walk came.
pub(super) struct Route {
    /// The directory, all links resolved.
    pub(super) directory: PathBuf,
    pub(super) missing: VecDeque<OsString>,
    pub(super) trust: Trust,
    /// The links that led here, each with its target.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

/// Which links a walk follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// Those that the real walk follows.
    Trusted,
    /// All, as the kernel does for whoever only reads.
    All,
}

impl Prediction {
    /// Walks towards a directory as far as it would exist.
    pub(super) fn walk(&self, path: &Path, links: Links) -> Result<Route, Problem> {
        let mut way = self.root()?;
        let mut ahead: VecDeque<OsString> = walk::components(path).collect();
        let mut own = ahead.len();
        let mut followed = Vec::new();
        while let Some(name) = ahead.pop_front() {
            let is_own = ahead.len() < own;
            own = own.min(ahead.len());
            if name == ".." {
                let parent = way.directory.parent().map(walk::components).into_iter().flatten();
                parent.collect::<Vec<_>>().into_iter().rev().for_each(|name| ahead.push_front(name));
                way = self.root()?;
                continue;
            }
            let at = way.directory.join(&name);
            match self.component(&at)? {
                Some(Entry { kind: FileKind::Directory, uid, mode, .. }) => {
                    way.trust.pass(&at, uid, mode);
                    way.directory = at;
                }
                Some(Entry { kind: FileKind::Symlink { target }, uid, nlink, .. }) => {
                    let risk = way.trust.risk_of_link(&way.directory, uid, nlink);
                    if let Some(risk) = risk.filter(|_| links == Links::Trusted) {
                        return Err(Problem::UnsafeLink { link: at, target, owner: uid, risk });
                    }
                    if followed.len() == walk::MOST_LINKS {
                        return Err(Problem::LinkLoop { link: at });
                    }
                    let inner: Vec<OsString> = walk::components(&target).collect();
                    inner.into_iter().rev().for_each(|name| ahead.push_front(name));
                    if target.is_absolute() {
                        way = self.root()?;
                    }
                    followed.push((at, target));
                }
                Some(_) => return Err(Problem::NotADirectory { component: at }),
                None => {
                    if let (false, Some((link, target))) = (is_own, followed.pop()) {
                        return Err(Problem::DanglingLink { link, target });
                    }
                    ahead.push_front(name);
                    (way.missing, way.links) = (ahead, followed);
                    return Ok(way);
                }
            }
        }
        way.links = followed;
        Ok(way)
    }

    fn root(&self) -> Result<Route, Problem> {
        let directory = PathBuf::from("/");
        let mut trust = Trust::default();
        if let Some(Entry { uid, mode, .. }) = self.entry(&directory)? {
            trust.pass(&directory, uid, mode);
        }
        Ok(Route { directory, missing: VecDeque::new(), trust, links: Vec::new() })
    }

    /// What the walk would come upon. What may be anything is the directory that the path takes it for.
    pub(super) fn component(&self, at: &Path) -> Result<Option<Entry>, Problem> {
        match self.known(at) {
            Known::Left(Left::Something(attributes)) => Ok(Some(of(FileKind::Directory, *attributes))),
            Known::Anything(attributes) => Ok(Some(of(FileKind::Directory, attributes))),
            Known::DiskOrAnything(attributes) => {
                Ok(entry::look(at)?.or_else(|| Some(of(FileKind::Directory, attributes))))
            }
            Known::Left(_) | Known::Void | Known::Disk => self.entry(at),
        }
    }
}

//! Predicts whether the path in `creates` will exist after an extraction.

use std::path::{Component, Path, PathBuf};

use crate::host::{
    files::{self, FileKind},
    unpack::What,
};

/// Maximum number of links to follow, as in the kernel.
const MOST_LINKS: usize = 40;

/// Whether a path will exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Creation {
    Certain,
    Impossible,
    /// A link points out of the target directory.
    Unknown,
}

/// Entry at a path of the target directory after the extraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Link(PathBuf),
    /// A file or directory.
    Other,
    /// The path cannot be inspected.
    Unknown,
}

impl From<&What> for Found {
    fn from(what: &What) -> Self {
        match what {
            What::Link { target } => Self::Link(target.clone()),
            What::File { .. } | What::Directory => Self::Other,
        }
    }
}

impl Found {
    /// Inspects a path with `lstat`.
    pub(super) fn on_disk(path: &Path) -> Self {
        match files::inspect(path).map(|entry| entry.map(|entry| entry.kind)) {
            Ok(None) => Self::Nothing,
            Ok(Some(FileKind::Symlink { target })) => Self::Link(target),
            Ok(Some(_)) => Self::Other,
            Err(_) => Self::Unknown,
        }
    }
}

/// Follows a path in the target directory component by component, and returns whether its last component will exist.
pub(super) fn predict(path: &Path, target: &Path, look: &dyn Fn(&Path) -> Found) -> Creation {
    let mut at = PathBuf::new();
    let mut ahead: Vec<PathBuf> = vec![path.to_owned()];
    let mut links = 0;
    while let Some(next) = ahead.pop() {
        let mut components = next.components();
        let Some(component) = components.next() else { continue };
        ahead.push(components.as_path().to_owned());
        match component {
            Component::CurDir => continue,
            Component::ParentDir if at.pop() => continue,
            Component::Normal(name) => at.push(name),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Creation::Unknown,
        }
        match look(&at) {
            Found::Other => {}
            // The last component of `creates` can be a link, which exists wherever it points.
            Found::Link(_) if ahead.iter().all(|rest| rest.as_os_str().is_empty()) => {
                return Creation::Certain;
            }
            Found::Link(to) => {
                links += 1;
                if links > MOST_LINKS {
                    return Creation::Unknown;
                }
                at.pop();
                match to.strip_prefix(target) {
                    Ok(inner) => {
                        at.clear();
                        ahead.push(inner.to_owned());
                    }
                    Err(_) if to.is_absolute() => return Creation::Unknown,
                    Err(_) => ahead.push(to),
                }
            }
            Found::Nothing => return Creation::Impossible,
            Found::Unknown => return Creation::Unknown,
        }
    }
    Creation::Certain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_followed_through_the_links_of_the_tree() {
        let look = |path: &Path| match path.to_str().unwrap() {
            "bin" | "bin/app" | "1.2" | "1.2/app" => Found::Other,
            "current" => Found::Link("./bin/../1.2".into()),
            "absolute" => Found::Link("/opt/bin".into()),
            "outside" => Found::Link("/usr".into()),
            "upwards" => Found::Link("../../x".into()),
            "loop" => Found::Link("loop".into()),
            "dangling" => Found::Link("missing".into()),
            "odd" => Found::Unknown,
            _ => Found::Nothing,
        };
        for (path, creation) in [
            ("", Creation::Certain),
            ("bin", Creation::Certain),
            ("bin/app", Creation::Certain),
            ("bin/other", Creation::Impossible),
            ("other/app", Creation::Impossible),
            ("current/app", Creation::Certain),
            ("current/other", Creation::Impossible),
            ("absolute/app", Creation::Certain),
            ("absolute/other", Creation::Impossible),
            ("outside/app", Creation::Unknown),
            ("upwards/app", Creation::Unknown),
            ("loop/app", Creation::Unknown),
            ("dangling", Creation::Certain),
            ("dangling/app", Creation::Impossible),
            ("odd/app", Creation::Unknown),
        ] {
            assert_eq!(predict(Path::new(path), Path::new("/opt"), &look), creation, "{path}");
        }
    }
}

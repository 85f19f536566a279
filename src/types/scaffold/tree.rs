//! The tree of templates, and the files that it comes to.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io::Read,
    path::{Component, Path, PathBuf},
};

use ccm_expr::Text;

use super::properties::{Engine, Properties};
use crate::{
    host::files::{self, FileKind},
    resource::{Error, Warning},
    template::{
        Author, Delimiters, JinjaError, JinjaTemplate, NeededFile, Scope, WrittenFiles, foreign_in_tree, jet,
    },
};

/// The folder whose files are only included.
const PARTIALS: &str = "_partials";
/// Larger files are not for trees.
const LARGEST: u64 = 64 << 20;
/// How much all files of a tree may come to: they are held in memory together.
const LARGEST_TREE: usize = 256 << 20;
/// How many files a tree may have.
const MOST: usize = 100_000;

/// The files that a tree comes to, by their places below the directory.
pub(super) type Rendered = BTreeMap<PathBuf, Vec<u8>>;

/// Files that one file of a tree comes to.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// Returns the path that a source names.
pub(super) fn path(source: &str) -> PathBuf {
    source.strip_prefix("file://").unwrap_or(source).into()
}

/// A tree that is there.
struct Tree<'w> {
    want: &'w Properties,
    root: PathBuf,
    /// The places of its files.
    places: Vec<PathBuf>,
    /// The places of files that are only included.
    partials: Vec<PathBuf>,
    /// Who can write to the tree: an untrusted user that can write to a part of it can change what the rest includes.
    author: Author,
    /// The files that the last template wrote.
    written: WrittenFiles,
}

/// Returns what is wrong with the templates of a tree that is there already.
pub(super) fn check(want: &Properties, beside: &Path, scope: &Scope) -> Vec<Error> {
    let root = root(want, beside);
    if files::names(&root).is_err() {
        // It may yet come.
        return Vec::new();
    }
    let tree = match Tree::read(want, root) {
        Ok(tree) => tree,
        Err(error) => return vec![error],
    };
    if want.engine == Engine::None {
        return Vec::new();
    }
    let own = tree.scope(scope);
    let scope = own.as_ref().unwrap_or(scope);
    let mut problems = Vec::new();
    for place in &tree.places {
        let name = place.to_string_lossy();
        if jet::is_named(&name) {
            problems.push(Error::new(jet::message(&name)).on("source").with_help(jet::HELP));
            continue;
        }
        problems.extend(tree.template(&name, &name).check(scope).into_iter().next().map(explained));
        tree.with_text(place, |template| {
            problems.extend(template.check(scope).into_iter().next().map(explained));
        });
    }
    for place in &tree.partials {
        // What it uses may be given by who includes it.
        tree.with_text(place, |template| problems.extend(template.parse(scope).err().map(explained)));
    }
    problems
}

/// Returns a warning for each file of a tree with a sign of another template language.
pub(super) fn foreign(want: &Properties, beside: &Path) -> Vec<Warning> {
    let root = root(want, beside);
    let is_rendered = want.engine == Engine::Jinja && files::names(&root).is_ok();
    let Some(tree) = is_rendered.then(|| Tree::read(want, root).ok()).flatten() else { return Vec::new() };
    let mut warnings = Vec::new();
    for place in tree.places.iter().chain(&tree.partials) {
        tree.with_text(place, |template| {
            let found = foreign_in_tree(&place.to_string_lossy(), template.text, template.delimiters);
            warnings.extend(found.map(|(place, sign, language)| Warning {
                id: "foreign-template",
                message: format!("{place}: `{sign}` belongs to {language} and stays as it is"),
                property: Some("source"),
                help: Some(FOREIGN.to_owned()),
            }));
        });
    }
    warnings
}

const FOREIGN: &str = "a scaffold reads Jinja templates: convert the file, set \
                       `left_delimiter` and `right_delimiter`, or copy the tree with `engine: none`";

/// Returns the files that the tree comes to, and whether a secret value is in one of them.
pub(super) fn render(want: &Properties, beside: &Path, scope: &Scope) -> Result<(Rendered, bool), Error> {
    let tree = Tree::read(want, root(want, beside))?;
    let own = tree.scope(scope);
    let scope = own.as_ref().unwrap_or(scope);
    let (mut rendered, mut size, mut is_secret) = (Rendered::new(), 0, false);
    for place in &tree.places {
        let (files, has_secret) = tree.files(place, scope)?;
        is_secret |= has_secret;
        for (target, bytes) in files {
            if want.skip_empty && bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            size += bytes.len();
            if size > LARGEST_TREE {
                return Err(failed(format!("the tree comes to more than {} MiB", LARGEST_TREE >> 20)));
            }
            if rendered.insert(target.clone(), bytes).is_some() {
                return Err(failed(format!("two files of the tree come to {}", target.display())));
            }
        }
    }
    let is_folder_too = |(one, next): &(&PathBuf, &PathBuf)| next.starts_with(one);
    if let Some((file, _)) = rendered.keys().zip(rendered.keys().skip(1)).find(is_folder_too) {
        return Err(failed(format!("{} comes out as a file and as a folder", file.display())));
    }
    Ok((rendered, is_secret))
}

impl<'w> Tree<'w> {
    /// Lists the files of the tree. Nothing in it but files and folders is accepted: a link could lead to what its owner
    /// may not read.
    fn read(want: &'w Properties, root: PathBuf) -> Result<Self, Error> {
        let top = files::inspect(&root).map_err(|error| Error::from(error).on("source"))?;
        let author = top.map_or(Author::Trusted, |entry| Author::of(&entry));
        let mut tree = Self {
            want,
            root,
            places: Vec::new(),
            partials: Vec::new(),
            author,
            written: WrittenFiles::default(),
        };
        tree.list(Path::new(""))?;
        if tree.places.is_empty() {
            return Err(failed(format!("source {} holds no file", tree.root.display())));
        }
        tree.places.sort();
        Ok(tree)
    }

    fn list(&mut self, folder: &Path) -> Result<(), Error> {
        for name in files::names(&self.root.join(folder)).map_err(|error| Error::from(error).on("source"))? {
            let place = folder.join(&name);
            let path = self.root.join(&place);
            let entry = files::inspect(&path).map_err(|error| Error::from(error).on("source"))?;
            if entry.as_ref().is_some_and(|entry| Author::of(entry) == Author::Untrusted) {
                self.author = Author::Untrusted;
            }
            match entry.map(|entry| entry.kind) {
                Some(FileKind::Directory) => self.list(&place)?,
                Some(FileKind::File) if place.starts_with(PARTIALS) => self.partials.push(place),
                Some(FileKind::File) => self.places.push(place),
                None => {}
                Some(_) => {
                    let message = format!("{} is no file: a tree holds files and folders", path.display());
                    return Err(failed(message));
                }
            }
            if self.places.len() + self.partials.len() > MOST {
                return Err(failed(format!("source {} holds more than {MOST} files", self.root.display())));
            }
        }
        Ok(())
    }

    /// Returns the scope of the tree's templates; `None` if it is the given one.
    fn scope(&self, scope: &Scope) -> Option<Scope> {
        let own = own_scope(self.want, scope);
        match self.author {
            Author::Trusted => own,
            Author::Untrusted => Some(own.as_ref().unwrap_or(scope).for_untrusted()),
        }
    }

    /// Returns the file that a file of the tree comes to, and those that it writes: the place of each and its content. Also
    /// returns whether a secret value is in one of them.
    fn files(&self, place: &Path, scope: &Scope) -> Result<(Files, bool), Error> {
        let path = self.root.join(place);
        let bytes = read(&path)?;
        if self.want.engine == Engine::None {
            return Ok((vec![(target(place)?, bytes)], false));
        }
        let Some(written) = place.to_str() else {
            return Err(failed(format!("the name {} is not UTF-8 text", place.display())));
        };
        let needed = |needed: &NeededFile| self.needed(needed, scope);
        let name = self.template(written, written).render(scope, needed).map_err(explained)?;
        let shown = path.display().to_string();
        let (bytes, is_secret) = match std::str::from_utf8(&bytes) {
            Ok(text) => {
                let Text { text, is_secret } =
                    self.template(&shown, text).render(scope, needed).map_err(explained)?;
                (text.into_bytes(), is_secret)
            }
            // What is no text is no template.
            Err(_) => (bytes, false),
        };
        if name.is_secret {
            return Err(failed(format!("the name {written} contains a secret value")));
        }
        let mut files = vec![(target(Path::new(&name.text))?, bytes)];
        for (name, text) in self.written.take() {
            let place = target(Path::new(&name)).map_err(|error| Error {
                message: format!("{shown}: `write`: {}", error.message),
                ..error
            })?;
            files.push((place, text.into_bytes()));
        }
        Ok((files, is_secret))
    }

    /// Returns the text of a file that a template includes, from the partials or else from the tree, or reads.
    fn needed(&self, needed: &NeededFile, scope: &Scope) -> Result<String, String> {
        let name = match needed {
            NeededFile::Read(_) if self.author == Author::Untrusted => {
                return Err("a tree that an untrusted user can write to reads no files".to_owned());
            }
            NeededFile::Read(path) => return scope.text_of(path),
            NeededFile::Included(name) => name,
        };
        let place = target(Path::new(name)).map_err(|error| error.message)?;
        let is_known = |place: &PathBuf| self.partials.contains(place) || self.places.contains(place);
        let known = [Path::new(PARTIALS).join(&place), place].into_iter().find(is_known);
        let Some(place) = known else {
            return Err(format!("there is no {name} in {PARTIALS} or in the tree"));
        };
        let bytes = read(&self.root.join(place)).map_err(|error| error.message)?;
        String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8 text"))
    }

    /// Hands on the template in a file, if it is one.
    fn with_text(&self, place: &Path, check: impl FnOnce(JinjaTemplate<'_>)) {
        let path = self.root.join(place);
        if let Some(text) = read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok()) {
            check(self.template(&path.display().to_string(), &text));
        }
    }

    fn template<'t>(&'t self, name: &'t str, text: &'t str) -> JinjaTemplate<'t> {
        let standard = Delimiters::default();
        let delimiters = Delimiters {
            left: self.want.left_delimiter.as_deref().unwrap_or(standard.left),
            right: self.want.right_delimiter.as_deref().unwrap_or(standard.right),
        };
        JinjaTemplate { name, text, delimiters, written: Some(&self.written) }
    }
}

/// Returns the folder that holds the tree, with nothing in its path that leads back.
fn root(want: &Properties, beside: &Path) -> PathBuf {
    let path = beside.join(path(want.source.as_deref().unwrap_or_default()));
    let mut clean = PathBuf::new();
    for component in std::path::absolute(&path).unwrap_or(path).components() {
        if component == Component::ParentDir {
            clean.pop();
        } else {
            clean.push(component);
        }
    }
    clean
}

/// Returns a place below the directory, unless it leads out of it or is none for a file.
fn target(place: &Path) -> Result<PathBuf, Error> {
    let is_name = |part: Component| match part {
        Component::Normal(name) => !has_nul(name) && !files::is_temporary_name(name),
        _ => false,
    };
    let ends_with_slash = place.as_os_str().as_encoded_bytes().ends_with(b"/");
    if place.as_os_str().is_empty() || ends_with_slash || !place.components().all(is_name) {
        let name = place.to_string_lossy();
        let message = format!("a name of the tree comes to {name:?}, which is no name of a file in it");
        return Err(failed(message));
    }
    Ok(place.components().collect())
}

fn has_nul(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&0)
}

/// What the templates see, where `data` takes the place of the manifest's.
fn own_scope(want: &Properties, scope: &Scope) -> Option<Scope> {
    let data = serde_json::Value::Object(want.data.clone()?);
    Some(scope.with_data(serde_json::from_value(data).unwrap_or_default()))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let unread = |reason: String| failed(format!("cannot read source {}: {reason}", path.display()));
    let opened = files::open_followed(path).map_err(|error| Error::from(error).on("source"))?;
    let Some((file, _)) = opened else { return Err(unread("it does not exist".to_owned())) };
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| unread(error.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(unread(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    Ok(bytes)
}

fn explained(JinjaError { place, message, help }: JinjaError) -> Error {
    Error { help, ..failed(format!("{place}: {message}")) }
}

fn failed(message: String) -> Error {
    Error::new(message).on("source")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_inside_the_directory_are_places() {
        for (name, expected) in [
            ("a", Some("a")),
            ("a/b", Some("a/b")),
            ("a//b", Some("a/b")),
            ("a/./b", Some("a/b")),
            ("", None),
            ("/a", None),
            ("..", None),
            ("a/../b", None),
            ("./a", None),
            ("a/", None),
            ("a\0b", None),
        ] {
            assert_eq!(target(Path::new(name)).ok(), expected.map(PathBuf::from), "{name:?}");
        }
    }
}

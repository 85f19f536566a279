//! What may be asked of a scaffold.

use std::{collections::BTreeMap, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

use super::{post::Post, tree};
use crate::{
    resource::{self, Coverage, Error, JointValidation, Managed, Warning, Watches},
    template::Scope,
    types::{
        ownership::{Ownership, missing},
        purge::Purge,
        validation::Validate,
    },
    vocabulary::{AbsolutePath, Account, Glob, Mode, has_scheme},
};

/// A directory that is made from a tree of templates.
///
/// Each file of the tree is rendered and written to the same place below the directory, as the `file` type writes files; only
/// files that differ are written. Names of files and folders are templates too. What is in the folder `_partials` of the
/// tree is there to be included and is not written. What is not text is copied as it is.
///
/// Folders that are missing are made. Those that exist keep their owner and mode unless `directory_mode` is given. Files
/// in the directory that the tree does not have are told in the state as `foreign`, and stay unless `purge` is set.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Absolute path of the directory.
    pub(crate) name: AbsolutePath,
    /// Whether the files are there. `absent` removes the files of the tree and the folders that are empty then; what the
    /// tree does not have stays.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// The folder that holds the tree, also as `file://`. A relative path starts at the folder of the manifest. Required:
    /// also what is to be removed is told by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-source" = true))]
    pub(crate) source: Option<String>,
    /// Whether files and names are templates with blocks (`jinja`), or copied as they are (`none`).
    #[serde(default)]
    pub(crate) engine: Engine,
    /// What begins an expression in the templates (default `{{`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_delimiter: Option<String>,
    /// What ends an expression in the templates (default `}}`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) right_delimiter: Option<String>,
    /// What the templates see as `Data`, in the place of the data of the manifest. On the command line, `--data` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub(crate) data: Option<Map<String, Value>>,
    /// Leave out files that come out empty, or with nothing but white space.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) skip_empty: bool,
    /// A command, a list of commands, or `{format: json}`, `yaml` or `toml`. ccm publishes new content only if all of
    /// them accept it. With `%s`, which is the path of a complete file, they validate each file alone. Without `%s`, a
    /// command such as `nginx -t` validates all changes of the run with the same `validate` together, in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) validate: Option<Validate>,
    /// If true, ccm removes the files in the directory that are neither in the tree nor managed by another resource of the
    /// manifest. ccm never follows links, and rejects `/`, home directories and mount points. If a file that would be
    /// removed belongs to a package, ccm fails unless the value is `force`.
    #[serde(default, skip_serializing_if = "Purge::is_off")]
    pub(crate) purge: Purge,
    /// Commands that process a file before it appears: maps of a pattern of file names such as `*.go`, or of paths in the
    /// directory such as `bin/*`, and a command without a shell. In the command, `{}` is the path of a copy of the file;
    /// without `{}`, the path is the last argument. The command can change the content and the mode of the file, which
    /// are then the desired ones. If it fails, the file is not written, and the next run executes it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-argument" = true))]
    pub(crate) post: Vec<Post>,
    /// User that owns the files, by name or UID. Default: the user that runs ccm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Account>,
    /// Group that owns the files, by name or GID. Default: the group that runs ccm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Account>,
    /// The permissions of the files in octal (default `"0644"`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// Permissions of some files, by patterns like those of `post`: `{"*.sh": "0755"}`. If several patterns match, the
    /// longest one applies. They override `mode` and the mode that a command of `post` sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub(crate) modes: BTreeMap<String, Mode>,
    /// The permissions of the folders in octal: those of the tree and the directory itself, with their owner and group. When
    /// it is not given, folders that are missing are made with those of the files, and may be searched by whoever may read
    /// or write these: `0644` makes `0755`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory_mode: Option<Mode>,
}

/// Whether the files are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// They are.
    #[default]
    Present,
    /// They are not.
    Absent,
}

/// What makes files out of the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Engine {
    /// They are templates with blocks.
    #[default]
    Jinja,
    /// They are copied as they are.
    None,
}

impl resource::Pinning for Properties {
    fn pin(
        &self,
        _: &resource::AnyState,
        _: Option<&resource::PlannedChange>,
        cx: &resource::Context,
    ) -> Result<resource::Pinned, Error> {
        let Some(scope) = cx.scope().filter(|_| self.source.is_some()) else {
            return Ok(resource::Pinned::default());
        };
        let (source, is_secret) = tree::render(self, &cx.resolve(""), scope)?;
        if is_secret {
            cx.mark_secret();
        }
        let rendered = [("engine", "none".into()), ("skip_empty", false.into())];
        let unneeded = ["left_delimiter", "right_delimiter", "data"].map(|key| (key, Value::Null));
        let properties = rendered.into_iter().chain(unneeded);
        let properties = properties.map(|(key, value)| (key.to_owned(), value)).collect();
        Ok(resource::Pinned { properties, source })
    }
}

/// The name of an engine, also of one that ccm does not have.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum EngineName {
    Jinja,
    None,
    Go,
    Jet,
}

impl<'de> Deserialize<'de> for Engine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let language = match EngineName::deserialize(deserializer)? {
            EngineName::Jinja => return Ok(Self::Jinja),
            EngineName::None => return Ok(Self::None),
            EngineName::Go => "Go templates",
            EngineName::Jet => "Jet templates",
        };
        Err(D::Error::custom(format!(
            "{language} are not supported: convert the tree to `jinja`, whose functions are in ccm-functions(7)"
        )))
    }
}

impl resource::Properties for Properties {
    fn pinning(&self) -> Option<&dyn resource::Pinning> {
        Some(self)
    }

    fn ensure(&self) -> String {
        match self.ensure {
            Ensure::Present => "present",
            Ensure::Absent => "absent",
        }
        .to_owned()
    }

    fn problems(&self) -> Vec<Error> {
        let mut problems = missing("a scaffold", &[("source", self.source.is_some())]);
        if self.name.as_path().parent().is_none() {
            problems.push(Error::new("the root directory cannot be made from templates").on("name"));
        }
        let delimiters = self.delimiters();
        if let (Engine::None, [(property, _), ..]) = (self.engine, delimiters.as_slice()) {
            problems.push(Error::new(format!("`{property}` needs `engine: jinja`")).on(property));
        }
        problems
    }

    fn problems_with(&self, _: Option<&str>) -> Vec<Error> {
        let mut problems: Vec<Error> = self.post.iter().filter_map(Post::problem).collect();
        if self.source.as_ref().is_some_and(String::is_empty) {
            let help = "name the folder with the templates";
            problems.push(Error::new("`source` is empty").on("source").with_help(help));
        }
        if self.source.as_deref().is_some_and(|source| has_scheme(source) && !source.starts_with("file://")) {
            let help = "download it with an `archive`, and use the directory that this extracts";
            problems
                .push(Error::new("`source` is not a directory on this machine").on("source").with_help(help));
        }
        let bad = self.modes.keys().filter_map(|pattern| Glob::try_from(pattern.clone()).err());
        problems.extend(bad.map(|error| Error::new(error.to_string()).on("modes")));
        for (property, _) in self.delimiters().into_iter().filter(|(_, text)| text.trim().is_empty()) {
            problems.push(Error::new(format!("`{property}` is empty")).on(property));
        }
        problems
    }

    fn problems_beside(&self, folder: &Path, scope: &Scope) -> Vec<Error> {
        tree::check(self, folder, scope)
    }

    fn warnings_beside(&self, folder: &Path) -> Vec<Warning> {
        tree::foreign(self, folder)
    }

    fn joint_validation(&self) -> Option<&dyn JointValidation> {
        Some(self)
    }

    fn watches(&self) -> Watches {
        let source = self.source.as_deref().map(tree::path);
        Watches {
            paths: std::iter::once(self.name.as_path().to_owned()).chain(source).collect(),
            folders: vec![self.name.as_path().to_owned()],
            // A directory tells only what comes to it and leaves it.
            completeness: Coverage::Poll,
            ..Ownership::of(self.owner.as_ref(), self.group.as_ref()).watches()
        }
    }

    fn manages(&self) -> Vec<Managed> {
        vec![self.managed()]
    }
}

impl Properties {
    /// The delimiters that were given, each with its property.
    fn delimiters(&self) -> Vec<(&'static str, &str)> {
        let both = [("left_delimiter", &self.left_delimiter), ("right_delimiter", &self.right_delimiter)];
        both.into_iter().filter_map(|(property, text)| Some((property, text.as_deref()?))).collect()
    }

    /// Returns the mode of a file that `modes` sets, by its path in the directory.
    pub(super) fn mode_of(&self, place: &Path) -> Option<u32> {
        let matches =
            |pattern: &str| Glob::try_from(pattern.to_owned()).is_ok_and(|pattern| pattern.matches(place));
        let found = self.modes.iter().filter(|(pattern, _)| matches(pattern));
        found.max_by_key(|(pattern, _)| pattern.len()).map(|(_, mode)| mode.bits())
    }

    /// All that lies in the directory is nobody else's to remove.
    pub(super) fn managed(&self) -> Managed {
        Managed::Tree(self.name.as_path().to_owned())
    }
}

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

/// Creates a directory from a tree of templates.
///
/// ccm renders each file of the tree to the same path in the directory, and writes only files that differ. Names of files
/// and directories are templates, too. Files in the directory `_partials` of the tree can be included, and are not written.
/// Files that are not text are copied unchanged.
///
/// ccm creates missing directories. Existing directories keep their owner and mode unless `directory_mode` is given. The
/// state lists files that are not in the tree as `foreign`. They stay unless `purge` is set.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Absolute path of the directory.
    pub(crate) name: AbsolutePath,
    /// Whether the files exist. `absent` removes the files of the tree, and then the empty directories. Other files stay.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// Directory of the tree, also as a `file://` URL. A relative path is relative to the manifest. Required, also with
    /// `absent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-source" = true))]
    pub(crate) source: Option<String>,
    /// Whether files and names are templates with blocks (`jinja`), or copied as they are (`none`).
    #[serde(default)]
    pub(crate) engine: Engine,
    /// Start of an expression in the templates (default `{{`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_delimiter: Option<String>,
    /// End of an expression in the templates (default `}}`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) right_delimiter: Option<String>,
    /// `Data` of the templates, instead of the data of the manifest. On the command line, `--data` sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub(crate) data: Option<Map<String, Value>>,
    /// If true, ccm does not write files whose rendered content is empty or white space.
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
    /// Permissions of the files in octal (default `"0644"`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// Permissions of some files, by patterns like those of `post`: `{"*.sh": "0755"}`. If several patterns match, the
    /// longest one applies. They override `mode` and the mode that a command of `post` sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub(crate) modes: BTreeMap<String, Mode>,
    /// Permissions in octal of the directory and of the directories in it. Default for a new directory: the permissions of
    /// the files, with permission to search for all users that can read or write them, so `0644` becomes `0755`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory_mode: Option<Mode>,
}

/// Whether the files exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// The files exist.
    #[default]
    Present,
    /// The files do not exist.
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

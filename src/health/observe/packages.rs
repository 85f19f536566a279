//! Observes packages through the package system of the machine.

use std::{cell::RefCell, cmp::Ordering, path::Path};

use serde_json::{Map, Value as Json};

use super::super::lens::{Lens, Seen, Unseen};
use crate::{
    checks::{Observed, Rule, VersionWanted},
    document::{Entry, Node, Scalar, Span, Style, Value},
    resource::{AnyType, Context, Provider},
    state::{LocalState, StateDirectory},
    vocabulary::package_version::Scheme,
};

/// The package system, queried through the `package` type.
pub(in crate::health) struct Packages {
    kind: &'static dyn AnyType,
    provider: Provider,
}

impl Packages {
    fn find(lens: &Lens) -> Result<Self, String> {
        let kind = lens.package_type;
        let provider = kind.provider(None, lens.host).map_err(|error| error.to_string())?;
        Ok(Self { kind, provider })
    }

    /// Returns the attributes that the type reports for a package.
    fn metadata(&self, name: &str, lens: &Lens) -> Result<Map<String, Json>, String> {
        let entry = |key: &str, text: &str| {
            let scalar = Scalar::new(text.to_owned(), Style::Literal);
            let value = Node { value: Value::Scalar(scalar), span: Span::default() };
            Entry { key: key.to_owned(), key_span: Span::default(), value }
        };
        // With `ensure: absent`, the type does not look up available versions.
        let map = Value::Map(vec![entry("name", name), entry("ensure", "absent")]);
        let wanted = self.kind.read(&Node { value: map, span: Span::default() });
        let wanted = wanted.map_err(|error| error.to_string())?;
        let (state, nothing) = (LocalState::at(StateDirectory::none()), RefCell::default());
        let mut silent = |_: &str| {};
        let limit = Some(lens.time_left());
        let cx = Context::new(lens.host, &state, &nothing, Path::new("/"), limit, &mut silent);
        let state = wanted.inspect(&self.provider, &cx).map_err(|error| error.to_string())?;
        let mut state = state.to_json(self.kind.name(), name);
        match state.remove("metadata") {
            Some(Json::Object(metadata)) => Ok(metadata),
            _ => Err("nothing is known about it".to_owned()),
        }
    }
}

pub(super) fn look(property: &str, rule: &Rule, lens: &Lens) -> Seen {
    let packages = lens.packages.get_or_init(|| Packages::find(lens)).as_ref();
    let packages = packages.map_err(|error| Unseen::Cannot(error.clone()))?;
    let metadata = packages.metadata(&rule.subject, lens).map_err(Unseen::Cannot)?;
    let version = metadata.get("version").and_then(Json::as_str);
    Ok(match (property, version) {
        ("installed", version) => version.is_some().into(),
        (_, None) => return Err(Unseen::Not("it is not installed".to_owned())),
        (_, Some(version)) => {
            let several = metadata.get("extended").and_then(|extended| extended.get("versions"));
            Observed::Value(several.cloned().unwrap_or_else(|| vec![version.to_owned()].into()))
        }
    })
}

/// Returns the difference between the installed versions and a requested version; `None` if one of them matches.
pub(in crate::health) fn complaint(wanted: &VersionWanted, seen: &Observed, lens: &Lens) -> Option<String> {
    let provider = match lens.packages.get() {
        Some(Ok(packages)) => packages.provider.name,
        _ => "",
    };
    let Observed::Value(Json::Array(versions)) = seen else { return Some("no version is known".to_owned()) };
    let versions: Vec<&str> = versions.iter().filter_map(Json::as_str).collect();
    let holds = |version: &&str| {
        let order = Scheme::of_provider(provider).order_to_wanted(version, &wanted.version);
        match wanted.relation {
            ">=" => order != Ordering::Less,
            "<=" => order != Ordering::Greater,
            ">" => order == Ordering::Greater,
            "<" => order == Ordering::Less,
            "!=" => order != Ordering::Equal,
            _ => order == Ordering::Equal,
        }
    };
    let VersionWanted { relation, version } = wanted;
    (!versions.iter().any(holds))
        .then(|| format!("expected version {relation}{version}, got {}", versions.join(", ")))
}

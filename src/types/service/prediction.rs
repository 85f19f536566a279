//! What a dry run makes of a unit that earlier resources would have brought, changed or taken away.

use std::path::Path;

use super::{
    reload_tracker::{UNIT_DIRECTORIES, is_of_units, is_of_unknown_effect},
    unit::{Unit, unit_name},
};
use crate::{resource::Context, template::Predicted};

/// The unit as a real run would find it, from how it is now.
pub(super) fn predict(unit: Option<Unit>, name: &str, cx: &Context) -> Option<Unit> {
    let id = unit_name(name);
    let files =
        cx.touched().iter().filter(|touched| touched.kind == "file").map(|file| Path::new(&file.name));
    let file =
        files.rev().find(|path| is_of_units(path) && path.file_name().is_some_and(|name| *name == *id));
    let left = file.and_then(|path| cx.predicted(path));
    let idle = || Unit::idle(name);
    match (file, left) {
        (Some(path), Some(Predicted::Nothing)) => {
            unit.filter(|unit| unit.is_alive() || is_elsewhere(&id, path))
        }
        (Some(_), Some(Predicted::Text(text))) => {
            let unit = unit.unwrap_or_else(idle);
            Some(Unit { boot: boot(&unit.boot, &text).to_owned(), ..unit })
        }
        (Some(_), None) => Some(unit.unwrap_or_else(idle)),
        (None, _) => unit.or_else(|| cx.touched().iter().any(is_of_unknown_effect).then(idle)),
    }
}

/// Whether another directory has a unit with this name, which counts when the file at the path is gone.
fn is_elsewhere(id: &str, path: &Path) -> bool {
    // Two of the directories may be the same.
    let gone = path.canonicalize().ok();
    let mut others = UNIT_DIRECTORIES.iter().map(|directory| Path::new(directory).join(id));
    others.any(|other| other.canonicalize().is_ok_and(|other| Some(other) != gone))
}

/// The word of `systemctl is-enabled` for a unit with this text, from the one that it has now. Links that are there stay.
fn boot<'a>(now: &'a str, text: &str) -> &'a str {
    let mut section = "";
    let (mut has_rules, mut has_companions) = (false, false);
    // A comment is a key that nobody knows.
    for line in text.lines().map(str::trim) {
        let entry = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        match entry.filter(|(_, value)| section == "[Install]" && !value.is_empty()) {
            _ if line.starts_with('[') => section = line,
            Some(("WantedBy" | "RequiredBy" | "UpheldBy" | "Alias", _)) => has_rules = true,
            Some(("Also", _)) => has_companions = true,
            _ => {}
        }
    }
    match now {
        "disabled" | "static" | "indirect" if has_rules => "disabled",
        "disabled" | "static" | "indirect" if has_companions => "indirect",
        "disabled" | "static" | "indirect" => "static",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installation_section_decides_whether_a_unit_can_be_enabled() {
        for (text, word) in [
            ("", "static"),
            ("[Service]\nExecStart=/bin/true\n", "static"),
            ("[Install]\n", "static"),
            ("[Install]\nWantedBy=\n", "static"),
            ("[Install]\n# WantedBy=multi-user.target\n; Alias=x.service\n", "static"),
            ("[Install]\nWantedBy=multi-user.target\n", "disabled"),
            ("[Unit]\nAfter=a\n[Install]\n  RequiredBy = a.target \n[Service]\nType=simple", "disabled"),
            ("[Install]\nAlias=other.service", "disabled"),
            ("[Install]\nUpheldBy=a.service\nAlso=b.service", "disabled"),
            ("[Install]\nAlso=b.socket", "indirect"),
            ("[Service]\nWantedBy=multi-user.target", "static"),
        ] {
            for now in ["disabled", "static", "indirect"] {
                assert_eq!(boot(now, text), word, "{text:?}");
            }
            for now in ["enabled", "enabled-runtime", "masked", "linked", "alias"] {
                assert_eq!(boot(now, text), now, "{text:?}");
            }
        }
    }
}

//! Predicts in a dry run how earlier resources would change a unit.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    reload_tracker::UNIT_DIRECTORIES,
    unit::{Unit, unit_name},
};
use crate::{
    host::look,
    resource::{Context, Prediction, UnitEffect},
    template::PredictedText,
};

/// Predicted unit file.
enum UnitFile {
    AsOnDisk,
    Removed(PathBuf),
    Written(String),
    /// The file exists or might exist, with unknown content.
    Unknown,
}

/// Returns the unit as a real run would find it.
pub(super) fn predict(unit: Option<Unit>, name: &str, cx: &Context) -> Option<Unit> {
    let (id, prediction) = (unit_name(name), cx.prediction.borrow());
    let idle = || Unit::idle(name);
    let unit = match unit_file(&id, &prediction) {
        UnitFile::AsOnDisk if unit.is_none() && prediction.may_differ() => {
            cx.assume(format!("{id} does not exist; assuming {} installs it", prediction.suspects()));
            Some(idle())
        }
        UnitFile::AsOnDisk => unit,
        UnitFile::Removed(path) => unit.filter(|unit| unit.is_alive() || is_elsewhere(&id, &path)),
        UnitFile::Written(text) => {
            let unit = unit.unwrap_or_else(idle);
            Some(Unit { boot: boot(&unit.boot, &text).to_owned(), ..unit })
        }
        UnitFile::Unknown => Some(unit.unwrap_or_else(idle)),
    };
    Some(after(unit?, prediction.unit(&id)))
}

/// Applies the effects of earlier resources to a unit.
fn after(mut unit: Unit, effect: Option<&UnitEffect>) -> Unit {
    if let Some(running) = effect.and_then(|effect| effect.running) {
        if running { "active" } else { "inactive" }.clone_into(&mut unit.active);
    }
    if let Some(enabled) = effect.and_then(|effect| effect.enabled) {
        if enabled { "enabled" } else { "disabled" }.clone_into(&mut unit.boot);
    }
    match effect.and_then(|effect| effect.masked) {
        Some(true) => "masked".clone_into(&mut unit.boot),
        Some(false) if unit.boot.starts_with("masked") => "disabled".clone_into(&mut unit.boot),
        _ => {}
    }
    unit
}

#[expect(clippy::disallowed_methods, reason = "units are files that any program may read")]
fn unit_file(id: &str, prediction: &Prediction) -> UnitFile {
    let mut found = UnitFile::AsOnDisk;
    for path in UNIT_DIRECTORIES.iter().map(|directory| Path::new(directory).join(id)) {
        match prediction.text(&path) {
            Some(PredictedText::Text(text)) => return UnitFile::Written(text),
            Some(PredictedText::CopyOf(source)) => {
                return fs::read_to_string(source).map_or(UnitFile::Unknown, UnitFile::Written);
            }
            Some(PredictedText::Unknown) => return UnitFile::Unknown,
            Some(PredictedText::Nothing) if fs::symlink_metadata(&path).is_ok() => {
                found = UnitFile::Removed(path);
            }
            None | Some(PredictedText::Nothing) => {}
        }
    }
    found
}

/// Returns whether another directory has a unit file of this name, which is used if the file at the path is removed.
fn is_elsewhere(id: &str, path: &Path) -> bool {
    // Two of the directories can be the same.
    let gone = look::real(path).ok();
    let mut others = UNIT_DIRECTORIES.iter().map(|directory| Path::new(directory).join(id));
    others.any(|other| look::real(&other).is_ok_and(|other| Some(other) != gone))
}

/// Returns the predicted state of `systemctl is-enabled` for a unit file with this content. Existing links stay.
fn boot<'a>(now: &'a str, text: &str) -> &'a str {
    let mut section = "";
    let (mut has_rules, mut has_companions) = (false, false);
    // Comments have no known key.
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
        "disabled" | "static" | "indirect" | "not-found" if has_rules => "disabled",
        "disabled" | "static" | "indirect" | "not-found" if has_companions => "indirect",
        "disabled" | "static" | "indirect" | "not-found" => "static",
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
            for now in ["disabled", "static", "indirect", "not-found"] {
                assert_eq!(boot(now, text), word, "{text:?}");
            }
            for now in ["enabled", "enabled-runtime", "masked", "linked", "alias"] {
                assert_eq!(boot(now, text), now, "{text:?}");
            }
        }
    }
}

//! Properties of many units with few round trips.
//!
//! One call (`ListUnitsByNames`) returns paths and states of all units. Whether a unit needs a reload and whether it
//! starts at boot takes one call per unit. All calls are sent before the first response.

use std::io;

use super::{
    MANAGER, PROPERTIES, SYSTEMD, SYSTEMD_PATH,
    connection::{Connection, Wait},
    unit_path,
    wire::{Answer, Arguments, Call, Reader},
};

/// Maximum number of units per call, which limits the size of a response.
const PORTION: usize = 256;

/// Connection to the bus for queries about units.
pub(crate) struct UnitBus(Connection);

/// Properties of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnitFacts {
    /// Name of the unit, with aliases resolved.
    pub(crate) id: String,
    pub(crate) load_state: String,
    pub(crate) active_state: String,
    pub(crate) sub_state: String,
    /// Whether the unit files have changed since systemd loaded them.
    pub(crate) needs_reload: bool,
    /// Enablement according to the current unit files; `None` if systemd cannot determine it.
    pub(crate) file_state: Option<String>,
}

impl UnitBus {
    /// Connects to the bus.
    pub(crate) fn connect() -> io::Result<Self> {
        Connection::open().map(Self)
    }

    /// Returns the properties of these units, in this order. Names are complete: `nginx.service`. After an error, the
    /// connection is unusable.
    pub(crate) fn read(&mut self, names: &[&str], wait: &Wait) -> io::Result<Vec<UnitFacts>> {
        let mut all = Vec::new();
        for names in names.chunks(PORTION) {
            all.extend(self.read_portion(names, wait)?);
        }
        Ok(all)
    }

    fn read_portion(&mut self, names: &[&str], wait: &Wait) -> io::Result<Vec<UnitFacts>> {
        let call = |path, interface, member, arguments| Call {
            to: SYSTEMD,
            path,
            interface,
            member,
            arguments,
            answer: Answer::Wanted,
        };
        let paths: Vec<String> = names.iter().map(|name| unit_path(name)).collect();
        let mut calls = vec![call(SYSTEMD_PATH, MANAGER, "ListUnitsByNames", Arguments::List(names))];
        // Sending all calls of one kind first halves the response time of systemd.
        for path in &paths {
            let stale = Arguments::Texts(&["org.freedesktop.systemd1.Unit", "NeedDaemonReload"]);
            calls.push(call(path, PROPERTIES, "Get", stale));
        }
        for name in names {
            let file = Arguments::Texts(std::slice::from_ref(name));
            calls.push(call(SYSTEMD_PATH, MANAGER, "GetUnitFileState", file));
        }
        let answers = self.0.ask(&calls, wait)?;
        facts(&answers, names.len()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Parses the responses: the list, and for each unit the need for a reload and the enablement.
fn facts(answers: &[Option<Vec<u8>>], count: usize) -> Option<Vec<UnitFacts>> {
    let (list, others) = answers.split_first()?;
    let listed = Reader::body(list.as_ref()?)?.list(listed)?;
    if listed.len() != count || others.len() != 2 * count {
        return None;
    }
    let (stale, files) = others.split_at(count);
    let mut all = Vec::new();
    for (unit, (stale, file)) in listed.into_iter().zip(stale.iter().zip(files)) {
        let needs_reload = boolean(stale.as_ref()?)?;
        let file_state = match file {
            Some(answer) => Some(Reader::body(answer)?.text()?),
            None => None,
        };
        all.push(UnitFacts { needs_reload, file_state, ..unit });
    }
    Some(all)
}

/// Parses one unit of the list: name, description, states, the unit that it follows, path, and job.
fn listed(reader: &mut Reader) -> Option<UnitFacts> {
    let (id, _description) = (reader.text()?, reader.text()?);
    let (load_state, active_state, sub_state) = (reader.text()?, reader.text()?, reader.text()?);
    let (_following, _path) = (reader.text()?, reader.text()?);
    let _job = (reader.number()?, reader.text()?, reader.text()?);
    Some(UnitFacts { id, load_state, active_state, sub_state, needs_reload: false, file_state: None })
}

/// Parses a response with one value: a variant with a boolean.
fn boolean(answer: &[u8]) -> Option<bool> {
    let mut body = Reader::body(answer)?;
    let is_boolean = body.signature()? == b"b";
    body.number().filter(|_| is_boolean).map(|number| number != 0)
}

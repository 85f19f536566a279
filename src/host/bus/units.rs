//! What systemd knows of units, asked for many at once.
//!
//! Where they are and what they do is one call for all of them (`ListUnitsByNames`); whether their files are newer than
//! what systemd has read and whether they start at boot is a call for each. All calls are under way at the same time.

use std::io;

use super::{
    MANAGER, PROPERTIES, SYSTEMD, SYSTEMD_PATH,
    connection::{Connection, Wait},
    unit_path,
    wire::{Answer, Arguments, Call, Reader},
};

/// How many units are asked about at once: the answer to one call has a size that anybody accepts.
const PORTION: usize = 256;

/// A connection to the bus on which systemd is asked about units.
pub(crate) struct UnitBus(Connection);

/// What systemd knows of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnitFacts {
    /// Its true name, which for an alias is the other unit's.
    pub(crate) id: String,
    pub(crate) load_state: String,
    pub(crate) active_state: String,
    pub(crate) sub_state: String,
    /// Whether its files have changed since systemd read them.
    pub(crate) needs_reload: bool,
    /// Whether it starts at boot, as its files are now; `None` when systemd cannot tell.
    pub(crate) file_state: Option<String>,
}

impl UnitBus {
    /// Connects to the bus.
    pub(crate) fn connect() -> io::Result<Self> {
        Connection::open().map(Self)
    }

    /// Returns what systemd knows of these units, in this order. Names are whole: `nginx.service`. After an error nothing
    /// can be asked any more.
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
        // All of one kind before those of the other, which systemd answers in half the time.
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

/// Reads the answers: the list, whether each unit is stale, and the state of the file of each.
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

/// Reads one unit of the list: name, description, states, the unit that it follows, path, and its job.
fn listed(reader: &mut Reader) -> Option<UnitFacts> {
    let (id, _description) = (reader.text()?, reader.text()?);
    let (load_state, active_state, sub_state) = (reader.text()?, reader.text()?, reader.text()?);
    let (_following, _path) = (reader.text()?, reader.text()?);
    let _job = (reader.number()?, reader.text()?, reader.text()?);
    Some(UnitFacts { id, load_state, active_state, sub_state, needs_reload: false, file_state: None })
}

/// Reads the one value of an answer: a variant with a boolean.
fn boolean(answer: &[u8]) -> Option<bool> {
    let mut body = Reader::body(answer)?;
    let is_boolean = body.signature()? == b"b";
    body.number().filter(|_| is_boolean).map(|number| number != 0)
}

//! Patterns that select hosts: `web:&prod:!web3`, `db[0]`, `~web[0-9]+`, `*.example.net`, `@failed.txt`.

use std::path::Path;

use indexmap::IndexSet;
use regex::Regex;

use super::{
    Loader, address,
    error::InventoryError,
    graph::{ALL, Graph, Index},
    sources,
};

/// The hosts that a pattern selects.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Selection {
    /// Names in the order of the pattern and the inventory.
    pub(crate) hosts: Vec<String>,
    /// Parts of the pattern that match no group and no host.
    pub(crate) unmatched: Vec<String>,
}

/// Returns the parts of a pattern, with the lines of a file in place of `@FILE`.
pub(super) fn parts(pattern: &str, loader: &Loader) -> Result<Vec<String>, InventoryError> {
    let mut parts = Vec::new();
    for part in split(pattern) {
        let Some(path) = part.strip_prefix('@').map(Path::new) else {
            parts.push(part.to_owned());
            continue;
        };
        let bytes = sources::read_file(path, loader)?;
        let text = String::from_utf8_lossy(&bytes);
        parts.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
    }
    Ok(parts)
}

/// Evaluates a pattern, and keeps only hosts that each of `limits` selects as well.
pub(super) fn select(
    graph: &Graph,
    pattern: &[String],
    limits: &[Vec<String>],
) -> Result<Selection, InventoryError> {
    let mut selection = Selection::default();
    let mut hosts = evaluate(graph, pattern, &mut selection.unmatched)?;
    for limit in limits {
        let kept = evaluate(graph, limit, &mut selection.unmatched)?;
        hosts.retain(|host| kept.contains(host));
    }
    selection.hosts = hosts.into_iter().map(|host| graph.host_name(host).to_owned()).collect();
    selection.unmatched.dedup();
    Ok(selection)
}

/// Splits a pattern at commas. Without a comma, at colons, unless it is one host name or address.
fn split(pattern: &str) -> Vec<&str> {
    let parts = if pattern.contains(',') {
        pattern.split(',').collect()
    } else if address::parse(pattern).is_some() {
        vec![pattern]
    } else {
        split_at_colons(pattern)
    };
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Splits at colons and white space outside of brackets.
fn split_at_colons(pattern: &str) -> Vec<&str> {
    let (mut parts, mut start, mut rest) = (Vec::new(), 0, 0);
    let bytes = pattern.as_bytes();
    while rest < bytes.len() {
        let length = match bytes[rest] {
            b'[' => pattern[rest..].find(']').map_or(0, |end| end + 1),
            b':' | b']' => 0,
            byte if byte.is_ascii_whitespace() => 0,
            _ => 1,
        };
        if length == 0 {
            parts.push(&pattern[start..rest]);
            rest += 1;
            start = rest;
        } else {
            rest += length;
        }
    }
    parts.push(&pattern[start..]);
    parts
}

fn evaluate(
    graph: &Graph,
    parts: &[String],
    unmatched: &mut Vec<String>,
) -> Result<Vec<Index>, InventoryError> {
    let mut parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    // Unions first, then intersections, then differences, whatever the order in which they are written.
    parts.sort_by_key(|part| match part.as_bytes()[0] {
        b'!' => 2,
        b'&' => 1,
        _ => 0,
    });
    if parts.first().is_none_or(|part| part.starts_with(['&', '!'])) {
        parts.insert(0, ALL);
    }
    let mut hosts: IndexSet<Index> = IndexSet::new();
    for part in parts {
        if let Some(host) = graph.host(part) {
            hosts.insert(host);
            continue;
        }
        let name = part.strip_prefix(['&', '!']).unwrap_or(part);
        let found: IndexSet<Index> = subscripted(graph, name, unmatched)?.into_iter().collect();
        match part.as_bytes()[0] {
            b'!' => hosts.retain(|host| !found.contains(host)),
            b'&' => hosts.retain(|host| found.contains(host)),
            _ => hosts.extend(found),
        }
    }
    Ok(hosts.into_iter().collect())
}

/// Positions that `[...]` at the end of a part selects.
#[derive(Clone, Copy)]
enum Subscript {
    One(isize),
    /// Both ends included.
    Range(usize, Option<usize>),
}

fn subscripted(graph: &Graph, part: &str, unmatched: &mut Vec<String>) -> Result<Vec<Index>, InventoryError> {
    let (name, subscript) = if part.starts_with('~') { (part, None) } else { split_subscript(part) };
    let hosts = matching(graph, name, unmatched)?;
    let is_local = ["localhost", "127.0.0.1", "::1"].contains(&name);
    if let (true, true, Some(Subscript::One(at))) = (hosts.is_empty(), is_local, subscript)
        && !(-1..=0).contains(&at)
    {
        // For Ansible, these names match one host that no inventory declares.
        return Err(InventoryError::pattern(part, format!("`{name}` has only 1 host")));
    }
    let Some(subscript) = subscript.filter(|_| !hosts.is_empty()) else { return Ok(hosts) };
    match subscript {
        Subscript::One(at) => {
            let at = if at < 0 { hosts.len().checked_add_signed(at) } else { usize::try_from(at).ok() };
            let host = at.and_then(|at| hosts.get(at));
            let missing =
                || InventoryError::pattern(part, format!("`{name}` has only {} hosts", hosts.len()));
            host.map(|&host| vec![host]).ok_or_else(missing)
        }
        Subscript::Range(first, last) => {
            let end = last.map_or(hosts.len(), |last| last.saturating_add(1)).min(hosts.len());
            Ok(hosts.get(first..end).unwrap_or_default().to_vec())
        }
    }
}

fn split_subscript(part: &str) -> (&str, Option<Subscript>) {
    let whole = (part, None);
    let Some((name, inner)) = part.strip_suffix(']').and_then(|part| part.rsplit_once('[')) else {
        return whole;
    };
    if name.is_empty() {
        return whole;
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(inner.strip_prefix('-').unwrap_or(inner)) {
        return (name, inner.parse().ok().map(Subscript::One));
    }
    match inner.split_once([':', '-']) {
        Some((first, last)) if is_number(first) && (last.is_empty() || is_number(last)) => {
            match last.parse() {
                // A range that ends with 0 is its first position, as in Ansible.
                Ok(0) => (name, first.parse().ok().map(Subscript::One)),
                last => (name, Some(Subscript::Range(first.parse().unwrap_or(usize::MAX), last.ok()))),
            }
        }
        _ => whole,
    }
}

/// Returns the hosts in groups that match, and the hosts that match themselves. A host that is found several times is listed
/// several times: as in Ansible, positions count it each time.
fn matching(graph: &Graph, name: &str, unmatched: &mut Vec<String>) -> Result<Vec<Index>, InventoryError> {
    let regex = match name.strip_prefix('~') {
        Some(expression) => Regex::new(&format!("^(?:{expression})")),
        None => Regex::new(&translate(name)),
    };
    let regex = regex.map_err(|_| InventoryError::pattern(name, "not a valid regular expression"))?;
    let groups: Vec<_> = graph.groups().filter(|(_, group)| regex.is_match(group)).collect();
    let mut hosts = Vec::new();
    for &(group, _) in &groups {
        hosts.extend(graph.hosts_of(group));
    }
    if groups.is_empty() || name.starts_with('~') || name.contains(['.', '?', '*', '[']) {
        hosts.extend(graph.hosts().filter(|(_, host)| regex.is_match(host)).map(|(index, _)| index));
    }
    if hosts.is_empty() && groups.is_empty() && name != ALL {
        unmatched.push(name.to_owned());
    }
    Ok(hosts)
}

/// Returns a shell pattern as a regular expression for a whole name.
pub(super) fn translate(glob: &str) -> String {
    let mut regex = "(?s)^".to_owned();
    let mut rest = glob;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match first {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => match set_end(rest) {
                Some(end) => {
                    regex.push_str(&set(&rest[1..end]));
                    length = end + 1;
                }
                None => regex.push_str("\\["),
            },
            other => regex.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
        rest = &rest[length..];
    }
    regex.push('$');
    regex
}

/// Returns the position of the `]` that ends a set. Right after the `[` or `[!` it is a member.
fn set_end(text: &str) -> Option<usize> {
    let skipped = if text.starts_with("[!") { 2 } else { 1 };
    let skipped = if text[skipped..].starts_with(']') { skipped + 1 } else { skipped };
    text[skipped..].find(']').map(|at| skipped + at)
}

fn set(members: &str) -> String {
    let (negation, members) = match members.strip_prefix('!') {
        Some(members) => ("^", members),
        None => ("", members),
    };
    let mut set = format!("[{negation}");
    for member in members.chars() {
        if matches!(member, '[' | ']' | '\\' | '^' | '&' | '~') {
            set.push('\\');
        }
        set.push(member);
    }
    set.push(']');
    set
}

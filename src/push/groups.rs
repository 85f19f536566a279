//! Hosts with the same result are one group.

use super::{
    range::ranges,
    result::{Change, HostResult, Outcome},
};

/// Hosts with the same result, changes and reason.
#[derive(Clone, Debug)]
pub(crate) struct Group<'r> {
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<&'r str>,
    pub(crate) changes: &'r [Change],
    pub(crate) hosts: Vec<String>,
}

impl Group<'_> {
    pub(crate) fn range(&self) -> String {
        ranges(&self.hosts)
    }
}

/// Returns the groups: successful ones first, and of these the largest first.
pub(crate) fn groups(results: &[HostResult]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for result in results {
        let HostResult { outcome, reason, changes, host, .. } = result;
        let reason = reason.as_deref();
        let same = |group: &&mut Group| {
            (group.outcome, group.reason, group.changes) == (*outcome, reason, changes.as_slice())
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.hosts.push(host.clone()),
            None => groups.push(Group { outcome: *outcome, reason, changes, hosts: vec![host.clone()] }),
        }
    }
    groups.sort_by_key(|group| (group.outcome, std::cmp::Reverse(group.hosts.len())));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_differ_in_nothing_are_one_group() {
        let change = |message: &str| Change {
            resource: "file#/etc/motd".to_owned(),
            message: message.to_owned(),
            diff: Some("+x".to_owned()),
        };
        let result = |host: &str, changes: Vec<Change>| HostResult {
            changes,
            ..HostResult::without_run(host, Outcome::Ok, None)
        };
        let gone = HostResult::without_run("web9", Outcome::Unreachable, Some("no route".to_owned()));
        let results = [
            gone,
            result("web1", vec![change("a")]),
            result("web3", vec![change("b")]),
            result("web2", vec![change("a")]),
        ];
        let shown: Vec<String> = groups(&results)
            .iter()
            .map(|group| format!("{} {}", group.outcome.name(), group.range()))
            .collect();
        assert_eq!(shown, ["ok web[1,2]", "ok web3", "unreachable web9"]);
    }
}

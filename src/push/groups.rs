//! Hosts with the same result are one group.

use super::{
    range::ranges,
    result::{Change, HostResult, Outcome},
};

/// Hosts with the same result, changes and reason.
#[derive(Clone, Debug)]
pub(crate) struct Group<'r> {
    pub(crate) outcome: Outcome,
    /// Of several hosts, without their addresses.
    pub(crate) reason: Option<&'r str>,
    common: Option<&'r str>,
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
        let HostResult { outcome, reason, common, changes, host, .. } = result;
        let common = common.as_ref().or(reason.as_ref()).map(String::as_str);
        let same = |group: &&mut Group| {
            (group.outcome, group.common, group.changes) == (*outcome, common, changes.as_slice())
        };
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.reason = common;
                group.hosts.push(host.clone());
            }
            None => {
                let (outcome, reason, hosts) = (*outcome, reason.as_deref(), vec![host.clone()]);
                groups.push(Group { outcome, reason, common, changes, hosts });
            }
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
        let gone = |host: &str| {
            let reason = format!("ssh: connect to host {host} port 22: No route to host");
            HostResult::without_run(host, Outcome::Unreachable, Some(reason)).without_address(host)
        };
        let results = [
            gone("web9"),
            gone("web8"),
            result("web1", vec![change("a")]),
            result("web3", vec![change("b")]),
            result("web2", vec![change("a")]),
        ];
        let shown: Vec<String> = groups(&results)
            .iter()
            .map(|group| format!("{} {}", group.outcome.name(), group.range()))
            .collect();
        assert_eq!(shown, ["ok web[1,2]", "ok web3", "unreachable web[8,9]"]);
        let groups = groups(&results[..2]);
        assert_eq!(groups[0].reason, Some("ssh: connect to host … port 22: No route to host"));
        assert_eq!(
            super::groups(&results[..1])[0].reason,
            Some("ssh: connect to host web9 port 22: No route to host")
        );
    }
}

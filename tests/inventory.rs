//! Inventories and patterns: `ccm hosts` agrees with Ansible, and errors have positions.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;
use serde_json::Value;

use crate::support::{World, skip};

/// Result of the oracle for one inventory.
#[derive(Deserialize)]
struct Expected {
    sources: Vec<String>,
    error: Option<String>,
    #[serde(default)]
    hosts: BTreeMap<String, Machine>,
    #[serde(default)]
    patterns: Vec<Selected>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Machine {
    groups: Vec<String>,
    variables: Value,
}

#[derive(Deserialize)]
struct Selected {
    pattern: String,
    error: Option<String>,
    #[serde(default)]
    hosts: Vec<String>,
}

#[derive(Deserialize)]
struct Listed {
    hosts: Vec<ListedHost>,
}

#[derive(Deserialize)]
struct ListedHost {
    name: String,
    #[serde(flatten)]
    machine: Machine,
}

#[test]
fn random_inventories_equal_those_of_ansible() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/ansible/bin/python");
    if !python.exists() {
        skip("needs ansible-core: `make test` installs it");
        return;
    }
    let count = |name: &str, usual: u32| {
        std::env::var(name).ok().and_then(|count| count.parse().ok()).unwrap_or(usual).to_string()
    };
    let seed = count("CCM_SEED", std::process::id());
    let world = World::new();
    let cases = world.path("cases");
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inventory/oracle.py"))
        .args([&seed, &count("CCM_INVENTORIES", 20), &count("CCM_PATTERNS", 4)])
        .arg(&cases)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut compared, mut patterns) = (0, 0);
    for case in fs::read_dir(&cases).unwrap() {
        patterns += compare(&world, &case.unwrap().path(), &seed);
        compared += 1;
    }
    assert!(compared >= 20 && patterns >= 2 * compared, "{compared} inventories, {patterns} patterns");
    assert!(compared < 500 || patterns >= 2000, "{compared} inventories, {patterns} patterns");
}

/// Compares one inventory and its patterns, and returns the number of patterns.
fn compare(world: &World, case: &Path, seed: &str) -> usize {
    let text = fs::read_to_string(case.join("expected.json")).unwrap();
    let expected: Expected = serde_json::from_str(&text).unwrap();
    let place = format!("CCM_SEED={seed}, case {}", case.file_name().unwrap().to_string_lossy());
    let list = |pattern: &str| {
        let mut arguments = vec!["hosts".to_owned(), "--json".to_owned()];
        for source in &expected.sources {
            arguments.extend(["-i".to_owned(), case.join(source).display().to_string()]);
        }
        arguments.extend(["--".to_owned(), pattern.to_owned()]);
        world.ccm(arguments).run()
    };
    let all = list("all");
    if let Some(error) = expected.error {
        assert_eq!(all.code, 2, "{place}: Ansible fails with {error}");
        return 0;
    }
    let hosts = serde_json::from_str::<Listed>(&all.exits(0).stdout).unwrap().hosts;
    let found: BTreeMap<_, _> = hosts.into_iter().map(|host| (host.name, host.machine)).collect();
    let names = |hosts: &BTreeMap<String, Machine>| hosts.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected.hosts), "{place}");
    for (name, mut machine) in expected.hosts {
        whole(&mut machine.variables);
        assert_eq!(found[&name], machine, "{place}: {name}");
    }
    let count = expected.patterns.len();
    for Selected { pattern, error, hosts } in expected.patterns {
        let selected = list(&pattern);
        if let Some(error) = error {
            assert_eq!(selected.code, 2, "{place}: `{pattern}` fails in Ansible with {error}");
            continue;
        }
        let mut names: Vec<_> = serde_json::from_str::<Listed>(&selected.exits(0).stdout)
            .unwrap()
            .hosts
            .into_iter()
            .map(|host| host.name)
            .collect();
        names.sort();
        assert_eq!(names, hosts, "{place}: `{pattern}`");
    }
    count
}

/// Writes `1.0` as `1`: ccm prints numbers by their value.
fn whole(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0);
            if let Some(float) = float {
                *value = format!("{float:.0}").parse::<i64>().unwrap().into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(entries) => entries.values_mut().for_each(whole),
        _ => {}
    }
}

/// Lists an inventory of one file.
fn hosts(name: &str, text: &str, arguments: &[&str]) -> crate::support::Outcome {
    let world = World::new().beside(name, text);
    let inventory = world.base().join(name).display().to_string();
    world.ccm(["hosts", "-i", &inventory].iter().chain(arguments)).run()
}

#[test]
fn short_form_has_hosts_groups_and_data() {
    let inventory = "\
hosts:
  web1: { address: 10.0.0.11, port: 2222, user: admin, data: { weight: 2 } }
  db[1:2]:
groups:
  web: [web1]
  db: { hosts: [db1, db2], data: { port: 5432 } }
  prod: { groups: [web, db] }
data: { domain: example.net }
";
    let listed = hosts("hosts.yaml", inventory, &["--json", "prod"]).exits(0).json();
    let expected = serde_json::json!({
        "protocol": "io.choria.ccm.v1.hosts",
        "hosts": [
            {
                "name": "web1",
                "groups": ["prod", "web"],
                "variables": {
                    "domain": "example.net",
                    "ansible_host": "10.0.0.11",
                    "ansible_port": 2222,
                    "ansible_user": "admin",
                    "weight": 2,
                },
            },
            { "name": "db1", "groups": ["db", "prod"], "variables": { "domain": "example.net", "port": 5432 } },
            { "name": "db2", "groups": ["db", "prod"], "variables": { "domain": "example.net", "port": 5432 } },
        ],
    });
    assert_eq!(listed, expected);
}

#[test]
fn executable_inventory_is_asked_for_its_list() {
    let program = "#!/bin/sh
case $1 in
--list) echo '{\"web\": {\"hosts\": [\"a\", \"b\"], \"vars\": {\"port\": 80}}, \"all\": {\"children\": [\"web\"]}}' ;;
--host) echo \"{\\\"own\\\": \\\"$2\\\"}\" ;;
esac
";
    let world = World::new().beside("inventory.sh", program);
    let inventory = world.base().join("inventory.sh");
    fs::set_permissions(&inventory, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let listed = world.ccm(["hosts", "-i", &inventory.display().to_string(), "--json"]).run().exits(0).json();
    let expected = serde_json::json!([
        { "name": "a", "groups": ["web"], "variables": { "port": 80, "own": "a" } },
        { "name": "b", "groups": ["web"], "variables": { "port": 80, "own": "b" } },
    ]);
    assert_eq!(listed["hosts"], expected);
}

#[test]
fn failing_inventory_program_is_an_error_with_its_last_line() {
    let world = World::new().beside("inventory", "#!/bin/sh\necho no credentials >&2\nexit 3\n");
    let inventory = world.base().join("inventory");
    fs::set_permissions(&inventory, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let outcome = world.ccm(["hosts", "-i", &inventory.display().to_string()]).run();
    outcome.exits(2).complains("`--list`: exit status 3: no credentials");
}

#[test]
fn saved_list_of_ansible_is_an_inventory() {
    let saved = r#"{
        "_meta": { "hostvars": { "a": { "port": 80 } } },
        "all": { "children": ["ungrouped", "web"] },
        "web": { "hosts": ["a"] }
    }"#;
    let listed = hosts("hosts.json", saved, &["--json"]).exits(0).json();
    let expected = serde_json::json!([{ "name": "a", "groups": ["web"], "variables": { "port": 80 } }]);
    assert_eq!(listed["hosts"], expected);
}

#[test]
fn errors_in_inventories_have_positions() {
    let vault = "all:\n  vars:\n    key: !vault |\n      $ANSIBLE_VAULT;1.1;AES256\n      3061\n";
    for (name, text, expected) in [
        ("hosts.ini", "[web]\nweb1 port\n", "hosts.ini:2: expected NAME=VALUE after the host, found `port`"),
        ("hosts.ini", "[web:other]\n", "hosts.ini:1: `[web:other]`: a heading ends with"),
        ("hosts.ini", "[web:children]\ndb\n", "hosts.ini:2: no group is named `db`"),
        ("hosts.ini", "[db:vars]\na=1\n", "hosts.ini:1: `[db:vars]`: no group is named `db`"),
        ("hosts.ini", "[a:children]\nb\n[b:children]\na\n", "the groups would contain each other"),
        (
            "hosts.ini",
            "web[03:1]\n",
            "hosts.ini:1: `web[03:1]`: `03` and `1` must have the same number of digits",
        ),
        ("hosts.ini", "web 'x\n", "hosts.ini:1: `web 'x`: a quote is never closed"),
        ("hosts.yaml", "all:\n  hosts: [a]\n", "hosts.yaml:2:10"),
        ("hosts.yaml", "all:\n  hosts:\n    1:\n", "write `\"1\"` in quotes"),
        ("hosts.yaml", "- a\n", "an inventory is a map of groups, not a list"),
        ("hosts.yaml", "hosts:\n  web1: { adress: 10.0.0.1 }\ngroups: {}\n", "did you mean `address`?"),
        ("hosts.yaml", "plugin: aws_ec2\n", "inventory plug-in `aws_ec2` is not supported"),
        ("hosts.toml", "", "TOML inventories are not supported"),
        ("hosts.yaml", vault, "`key` is encrypted with ansible-vault"),
        ("hosts.ini", "$ANSIBLE_VAULT;1.1;AES256\n3061\n", "the file` is encrypted with ansible-vault"),
    ] {
        hosts(name, text, &[]).exits(2).complains(expected);
    }
}

#[test]
fn pattern_part_that_matches_nothing_is_a_warning() {
    let outcome = hosts("hosts.ini", "web1\n", &["web1:!wbe2"]);
    outcome.exits(0).says("web1").complains("pattern `wbe2` matches no host and no group");
}

#[test]
fn position_counts_a_host_once_for_each_match_as_ansible_does() {
    // `*` matches `all`, the group `db` and the hosts.
    for (pattern, expected) in
        [("*[0]", &["a"][..]), ("*[2:3]", &["a", "b"]), ("*[1:]", &["b", "a"]), ("db[1:]", &["b"])]
    {
        let listed = hosts("hosts.ini", "[db]\na\nb\n", &["--", pattern]);
        let names = listed.exits(0).stdout.lines().filter_map(|line| line.split(' ').next());
        assert_eq!(names.collect::<Vec<_>>(), expected, "{pattern}");
    }
}

#[test]
fn file_of_host_names_selects_its_lines() {
    let world = World::new().beside("hosts.ini", "a\nb\nc\n").beside("failed.txt", "c\na\n");
    let path = |name: &str| world.base().join(name).display().to_string();
    let pattern = format!("@{}", path("failed.txt"));
    let limited = world.ccm(["hosts", "-i", &path("hosts.ini"), "--limit", &pattern]).run();
    assert_eq!(limited.exits(0).stdout, "a  (ungrouped)\nc  (ungrouped)\n");
}

#[test]
fn passwords_are_masked_on_a_terminal_page() {
    let outcome = hosts("hosts.ini", "a ansible_password=hunter2 port=80\n", &[]);
    outcome.exits(0).says("ansible_password: [secret]").says("port: 80").never_says("hunter2");
}

#[test]
fn ssh_configuration_names_hosts() {
    if !rustix::process::geteuid().is_root() {
        skip("needs root: it mounts over the home directory of the account");
        return;
    }
    let world = World::new();
    let home: PathBuf = world.base().join("account");
    fs::create_dir_all(home.join(".ssh/conf.d")).unwrap();
    let config =
        "Include conf.d/*\nHost web1 web2 !web9 *.example.net\n  User admin\nHost=\"cache 1\"\nMatch all\n";
    fs::write(home.join(".ssh/config"), config).unwrap();
    fs::write(home.join(".ssh/conf.d/more"), "host web3 # spare\n").unwrap();
    let mount =
        format!("mount --bind {} \"$(getent passwd 0 | cut -d: -f6)\" && exec \"$@\"", home.display());
    let call = world.ccm(["hosts", "ssh:web*"]).env("HOME", "/nonexistent");
    let outcome = call.under(["unshare", "-m", "sh", "-c", &mount, "sh"]).run();
    assert_eq!(outcome.exits(0).stdout, "web3\nweb1\nweb2\n");
}

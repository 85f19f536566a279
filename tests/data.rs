//! Hierarchical data: what is merged over what, which rules hold of it, and where it comes from.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use serde_json::{Value, json};

use crate::support::{NOBODY, Outcome, World, is_root};

const LAYERS: &str = "
data:
  package: httpd
  port: 8080
  modules: [ssl]
  limits: { files: 10, users: 5 }
hierarchy:
  order:
    - \"os:${ lookup('facts.kin') }\"
    - \"role:${ lookup('facts.role') }\"
    - \"${ Facts.site }:${ Facts.room ?? '' }\"
    - \"host:${ lookup('facts.host.name', '') }\"
    - \"rack:${ Facts.rack.row.name }\"
  merge: MERGE
overrides:
  os:debian: { package: apache2, modules: [deb], limits: { files: 20 } }
  os:: { package: never }
  role:web: { port: 80, modules: [proxy], limits: { disk: 1 } }
  'role:': { package: never }
  ':': { package: never }
  'paris:': { port: 81 }
  host:: { package: never }
  'rack:': { package: never }
";

/// The data of a file on a machine with these facts.
#[track_caller]
fn parsed(text: &str, facts: &[&str]) -> Value {
    let world = World::new().beside("data.yaml", text);
    world.ccm(["hiera", "parse", "data.yaml"].iter().chain(facts)).run().exits(0).json()
}

#[test]
fn with_first_only_the_first_override_found_replaces_keys() {
    let layers = LAYERS.replace("MERGE", "first");
    let base = json!({ "package": "httpd", "port": 8080, "modules": ["ssl"], "limits": { "files": 10, "users": 5 } });
    assert_eq!(parsed(&layers, &[]), base);
    assert_eq!(parsed(&layers, &["kin=redhat"]), base);
    let debian = json!({ "package": "apache2", "port": 8080, "modules": ["deb"], "limits": { "files": 20 } });
    assert_eq!(parsed(&layers, &["kin=debian"]), debian);
    assert_eq!(parsed(&layers, &["kin=debian", "role=web"]), debian);
    let web = json!({ "package": "httpd", "port": 80, "modules": ["proxy"], "limits": { "disk": 1 } });
    assert_eq!(parsed(&layers, &["role=web"]), web);
    assert_eq!(parsed(&layers, &["kin=redhat", "role=web"]), web);
    // Without a word about it, the first one found is all.
    assert_eq!(parsed(&layers.replace("  merge: first\n", ""), &["kin=debian", "role=web"]), debian);
}

#[test]
fn with_deep_all_overrides_found_are_merged_in_order() {
    let layers = LAYERS.replace("MERGE", "deep");
    let merged = json!({
        "package": "apache2", "port": 80, "modules": ["ssl", "deb", "proxy"], "limits": { "files": 20, "users": 5, "disk": 1 },
    });
    assert_eq!(parsed(&layers, &["kin=debian", "role=web"]), merged);
    for (order, facts, found) in [
        ("x:${ Facts.nope }:${ Facts.kin }", &["kin=debian"][..], Some("x::debian")),
        ("x:${ Facts.kin }:${ Facts.a.b.c }", &["kin=debian"], Some("x:debian:")),
        ("${ lookup('facts.env') }:${ lookup('facts.kin') }", &["kin=debian", "env=null"], Some(":debian")),
        ("${ lookup('facts.env') }", &["env=null"], None),
        ("x:${ Facts.nope }:${ lookup('facts.nope') }", &[], None),
        ("x:${ Facts.zero }", &["zero=0"], Some("x:0")),
    ] {
        let overrides = found.map(|name| format!("'{name}': {{ a: 2 }}, ")).unwrap_or_default();
        let text = format!(
            "\
data: {{ a: 1 }}
hierarchy: {{ order: [\"{order}\"] }}
overrides: {{ {overrides}'': {{ a: 3 }}, 'x:': {{ a: 3 }}, 'x::': {{ a: 3 }}, ':': {{ a: 3 }} }}"
        );
        assert_eq!(parsed(&text, facts), json!({ "a": found.map_or(1, |_| 2) }), "{order}");
    }
    assert_eq!(
        parsed(&layers, &["site=paris", "role=web"])["port"],
        81,
        "an entry with one empty part is looked for"
    );
    let kinds = "\
data: { a: { x: 1 }, b: [1], c: 1, d: null, e: 1 }
hierarchy: { order: [over], merge: deep }
overrides: { over: { a: null, b: null, c: null, d: [2], f: { g: 1 } } }
";
    assert_eq!(
        parsed(kinds, &[]),
        json!({ "a": null, "b": null, "c": null, "d": [2], "e": 1, "f": { "g": 1 } })
    );
}

#[test]
fn whole_numbers_keep_all_their_digits() {
    let text = "data: { most: 9223372036854775807, more: 9223372036854775808, hex: 0xffff_ffff_ffff_ffff, \
                id: 12345678901234567890, least: -9223372036854775809, huge: [123456789012345678901234567890], f: 1e30 }";
    assert_eq!(
        parsed(text, &[]),
        json!({
            "most": i64::MAX, "more": "9223372036854775808", "hex": "18446744073709551615",
            "id": "12345678901234567890", "least": "-9223372036854775809",
            "huge": ["123456789012345678901234567890"], "f": 1e30,
        })
    );
}

#[test]
fn without_a_hierarchy_the_order_is_default() {
    assert_eq!(
        parsed("data: { a: 1, b: 1 }\noverrides: { default: { a: 2 }, other: { b: 2 } }", &[]),
        json!({ "a": 2, "b": 1 })
    );
    assert_eq!(
        parsed("data: { a: [1] }\nhierarchy: { merge: deep }\noverrides: { default: { a: [2] } }", &[]),
        json!({ "a": [1, 2] })
    );
    assert_eq!(parsed("overrides: { default: { a: 2 } }", &[]), json!({ "a": 2 }));
    assert_eq!(parsed("data:", &[]), json!({}));
    assert_eq!(
        parsed("data: { a: 1 }\nhierarchy: { order: [] }\noverrides: { default: { a: 2 } }", &[]),
        json!({ "a": 1 })
    );
}

#[test]
fn data_and_overrides_are_templates_over_facts() {
    let text = "\
data: { os: \"${ lookup('facts.kin') }\", n: \"{{ 1 + 1 }}\", deep: { list: [\"is ${ Facts.kin }\"] } }
overrides: { default: { more: '${ upper(Facts.kin) }' } }
";
    assert_eq!(
        parsed(text, &["kin=debian"]),
        json!({ "os": "debian", "n": 2, "deep": { "list": ["is debian"] }, "more": "DEBIAN" })
    );
}

/// A manifest that writes down what it sees.
fn seen(world: World, sections: &str, expression: &str) -> World {
    world.manifest(&format!(
        "{sections}\nccm:\n  resources:\n    - file: {{ $W/x: {{ content: \"${{ toJSON({expression}) }}\", $OWN, mode: '0644' }} }}\n"
    ))
}

#[test]
fn flags_go_over_the_file_and_the_file_over_the_manifest() {
    let sections = "data: { a: manifest, b: manifest, c: manifest, list: [1], map: { x: 1 } }\noverrides: { default: { b: override } }";
    let world = seen(World::new(), sections, "Data").beside(
        "site-data.yaml",
        "\
data: { c: file, d: file, list: [2], map: { y: '${ Facts.role }' } }
hierarchy: { order: ['role:${ Facts.role }'] }
overrides: { 'role:web': { d: web } }
",
    );
    let data = |flags: &[&str]| -> Value {
        world.ccm(["apply", "site.yaml", "--fact", "role=web"].iter().chain(flags)).run().exits(0);
        serde_json::from_str(&world.read("x")).unwrap()
    };
    let own = json!({ "a": "manifest", "b": "override", "c": "manifest", "list": [1], "map": { "x": 1 } });
    assert_eq!(data(&[]), own);
    let file = json!({
        "a": "manifest", "b": "override", "c": "file", "d": "web", "list": [1, 2], "map": { "x": 1, "y": "web" },
    });
    assert_eq!(data(&["--hiera", "site-data.yaml"]), file);
    let flags =
        ["--hiera", "site-data.yaml", "--data", "c=flag", "--data", "map.y=2", "--data", "map.z.deep=true"];
    let all = data(&flags);
    assert_eq!(all["c"], "flag");
    assert_eq!(all["map"], json!({ "x": 1, "y": 2, "z": { "deep": true } }));
    // The variable does what the flag does, and the flag wins.
    world
        .ccm(["apply", "site.yaml", "--fact", "role=web"])
        .env("CCM_HIERA_DATA", "site-data.yaml")
        .run()
        .exits(0);
    assert_eq!(serde_json::from_str::<Value>(&world.read("x")).unwrap(), file);
    let call = world.ccm(["apply", "site.yaml", "--fact", "role=web", "--hiera", "site-data.yaml"]);
    call.env("CCM_HIERA_DATA", "missing.yaml").run().exits(0);
}

#[test]
fn values_of_flags_are_read_as_yaml_reads_them() {
    let world = World::new();
    for (flag, value) in [
        ("v=1", json!(1)),
        ("v=1.5", json!(1.5)),
        ("v=true", json!(true)),
        ("v=", json!("")),
        ("v=null", Value::Null),
        ("v='1'", json!("1")),
        ("v=yes", json!("yes")),
        ("v=a=b", json!("a=b")),
        ("v=[1, a]", json!([1, "a"])),
        ("v={a: 1}", json!({ "a": 1 })),
        ("v=a b", json!("a b")),
        ("v='{{ 1 + 1 }}'", json!("{{ 1 + 1 }}")),
        ("v={{ 1 + 1 }}", json!("{{ 1 + 1 }}")),
        ("v= {{ 1 + 1 }}", json!(" {{ 1 + 1 }}")),
        ("v={{", json!("{{")),
        ("v=${ 1 + 1 }", json!("${ 1 + 1 }")),
        ("v=/etc/motd", json!("/etc/motd")),
        ("v=10.0.0.1", json!("10.0.0.1")),
        ("v=C:\\x", json!("C:\\x")),
        ("v=@x", json!("@x")),
    ] {
        for kind in ["Data", "Facts"] {
            let name = if kind == "Data" { "--data" } else { "--fact" };
            let found = world.ccm(["eval", &format!("{kind}.v"), name, flag]).run();
            assert_eq!(found.exits(0).json(), value, "{flag}");
        }
    }
    for number in ["9223372036854775808", "12345678901234567890", "123456789012345678901234567890"] {
        let found = world.ccm(["eval", "Data.v", "--data", &format!("v={number}")]).run();
        assert_eq!(found.exits(0).json(), json!(number), "no digit is lost");
    }
    let nested =
        world.ccm(["eval", "Data", "--data", "a.b.c=1", "--data", "a.b.d=2", "--data", "a.e=3"]).run();
    assert_eq!(nested.json(), json!({ "a": { "b": { "c": 1, "d": 2 }, "e": 3 } }));
    for flag in ["v=[1", "v={a", "v='a", "v=\"a\" b"] {
        world.ccm(["eval", "1", "--data", flag]).run().exits(2).complains("--data").complains("quote it");
    }
    world.ccm(["eval", "1", "--data", "novalue"]).run().exits(2).complains("--data").complains("KEY=VALUE");
    world.ccm(["eval", "1", "--data", "=1"]).run().exits(2).complains("--data").complains("is no key");
}

const RULES: &str = "
data:
  # @require
  name: web
  # What it listens on.
  # @validate isInt(value)
  # @validate value > 0 and value < 65536
  port: 8080
  address: 10.0.0.1  # @validate isIP(value)
  nested: # @require
    # @require
    inner: x
    deep:
      # @validate isHostname(value)
      host: web1
  flow: { a: 1, # @validate isInt(value)
          b: 2 }
  text: | # @validate value contains 'x'
    x
  # @require

  # @author nobody
  free: ''
";

#[test]
fn rules_hold_of_merged_data_and_all_that_are_broken_are_told_at_once() {
    let world = World::new().manifest(&format!("{RULES}\nccm: {{ resources: [] }}\n"));
    world.apply().exits(0);
    let broken = [
        "--data",
        "name=",
        "--data",
        "port=high",
        "--data",
        "address=10.0.0",
        "--data",
        "nested.inner=''",
        "--data",
        "nested.deep.host=a_b",
        "--data",
        "flow.a=x",
        "--data",
        "text=y",
    ];
    for command in [&["validate"][..], &["apply"], &["apply", "--noop"]] {
        let outcome = world.ccm(command.iter().copied().chain(["site.yaml"]).chain(broken)).run();
        outcome.exits(2).complains("8 errors in site.yaml");
        for (place, message) in [
            ("4:3", "data `name` is required and has no value"),
            ("8:3", "data `port` is not valid: `isInt(value)` is false"),
            ("7:15", "the rule of data `port`: "),
            ("9:3", "data `address` is not valid: `isIP(value)` is false"),
            ("12:5", "data `nested.inner` is required and has no value"),
            ("15:7", "data `nested.deep.host` is not valid: `isHostname(value)` is false"),
            ("16:11", "data `flow.a` is not valid"),
            ("18:3", "data `text` is not valid: `value contains 'x'` is false"),
        ] {
            outcome.complains(message).complains(&format!("site.yaml:{place}"));
        }
    }
    let world = world.manifest(
        "data:\n  # @require\n  a: null\noverrides: { default: { a: 1 } }\nccm: { resources: [] }\n",
    );
    world.apply().exits(0);
    let world = world.manifest("data:\n  # @require\n  a: 1\noverrides: { default: { a: null } }\n");
    world.apply().exits(2).complains("data `a` is required and has no value").complains("site.yaml:3:3");
}

#[test]
fn rules_of_a_file_hold_of_what_goes_over_it() {
    let rules = "data:\n  # @validate isInt(value)\n  port: 8080\n  # @require\n  password:\n";
    let world = seen(World::new(), "data: { own: 1 }", "Data").beside("outer.yaml", rules);
    let hiera = ["--hiera", "outer.yaml"];
    world.apply_with(&hiera).exits(2).complains("data `password` is required").complains("outer.yaml:5:3");
    world.apply_with(&[&hiera[..], &["--data", "password=x"]].concat()).exits(0);
    let outcome = world.apply_with(&[&hiera[..], &["--data", "port=high"]].concat());
    outcome
        .exits(2)
        .complains("`isInt(value)` is false")
        .complains("`password`")
        .complains("2 errors in outer.yaml");
    let eval = |flags: &[&str]| world.ccm(["eval", "Data.port"].iter().chain(&hiera).chain(flags)).run();
    eval(&["--data", "password=x", "--data", "port=9"]).exits(0).says("9");
    eval(&["--data", "password=x", "--data", "port=high"]).exits(2).complains("outer.yaml:3:3");
    // What is wrong with the one does not hide what is wrong with the other.
    let world = world.manifest("data:\n  # @require\n  own:\nccm: { resources: [] }\n");
    let outcome = world.apply_with(&hiera);
    outcome.exits(2).complains("data `own` is required").complains("data `password` is required");
    outcome.complains("1 error in site.yaml, 1 error in outer.yaml");
}

#[test]
fn every_function_for_rules_has_two_spellings() {
    for (name, also, good, bad) in [
        ("isIP", "is_ip", "'::1'", "a"),
        ("isIPv4", "is_ipv4", "10.0.0.1", "'::1'"),
        ("isIPv6", "is_ipv6", "'::1'", "10.0.0.1"),
        ("isInt", "is_int", "12", "1.5"),
        ("isFloat", "is_float", "1.5", "x"),
        ("isDuration", "is_duration", "1h30m", "soon"),
        ("isShellSafe", "is_shell_safe", "a-b/c", "a;b"),
        ("isShellSafe", "is_shellsafe", "a b", "'*'"),
        ("isHostname", "is_hostname", "web1", "a_b"),
        ("isFQDN", "is_fqdn", "web1.example.net", "web1"),
    ] {
        for name in [name, also] {
            let world = World::new()
                .beside("data.yaml", format!("data:\n  # @validate {name}(value)\n  v: {good}\n"));
            world.ccm(["hiera", "parse", "data.yaml"]).run().exits(0);
            let world =
                World::new().beside("data.yaml", format!("data:\n  v: {bad} # @validate {name}(value)\n"));
            let message = format!("data `v` is not valid: `{name}(value)` is false");
            world
                .ccm(["hiera", "parse", "data.yaml"])
                .run()
                .exits(2)
                .complains(&message)
                .complains("data.yaml:2:3");
        }
    }
    for name in ["isRegex", "is_regex"] {
        let text = |value: &str| format!("data:\n  # @validate {name}(value, '^[a-z]+$')\n  v: {value}\n");
        parsed(&text("abc"), &[]);
        let world = World::new().beside("data.yaml", text("ABC"));
        world.ccm(["hiera", "parse", "data.yaml"]).run().exits(2).complains("is false");
    }
}

#[test]
fn rules_that_are_wrong_themselves_are_told_at_their_place() {
    for (rule, place, message, help) in [
        ("@validate isInts(value)", "2:15", "unknown function `isInts`", "did you mean `isInt`?"),
        ("@validate valu > 1", "2:15", "unknown variable `valu`", "did you mean `value`?"),
        ("@validate value +", "2:22", "expected an expression", ""),
        ("@validate", "2:14", "expression is empty", ""),
        ("@validate value", "2:5", "must give a boolean, not int", ""),
        ("@validate isInt(value, 2)", "2:15", "isInt takes one value", ""),
        ("@validate isRegex(value)", "2:15", "isRegex takes a value and a pattern", ""),
        ("@validate isRegex(value, '(')", "2:30", "the rule of data `v`", ""),
        ("@validate file('/etc/passwd') != ''", "2:15", "`file` cannot be used in data: it reads files", ""),
        ("@validate kvGet('a', 'b') != ''", "2:15", "`kvGet` cannot be used in data", ""),
    ] {
        let world = World::new()
            .beside("data.yaml", format!("data:\n  # {rule}\n  v: 1\nccm: {{ resources: [] }}\n"));
        let outcome = world.ccm(["hiera", "parse", "data.yaml"]).run();
        outcome.exits(2).complains(message).complains(&format!("data.yaml:{place}")).complains(help);
    }
    let world =
        World::new().beside("data.yaml", "data:\n  users:\n    - name: a\n      # @require\n      shell:\n");
    world
        .ccm(["hiera", "parse", "data.yaml"])
        .run()
        .exits(2)
        .complains("inside a list")
        .complains("data.yaml:4:9");
}

#[test]
fn words_that_are_no_rules_are_warnings() {
    for (rule, help) in [
        ("@requires", "did you mean `@require`?"),
        ("@validated isInt(value)", "did you mean `@validate`?"),
        ("@author nobody", "@require and @validate"),
        ("@", "@require and @validate"),
    ] {
        let named = rule.split(' ').next().unwrap();
        let world = World::new()
            .beside("data.yaml", format!("data:\n  # {rule}\n  v: 1\nccm: {{ resources: [] }}\n"));
        let manifest = world.manifest("ccm: { resources: [] }");
        for command in [
            &["hiera", "parse", "data.yaml"][..],
            &["apply", "site.yaml", "--hiera", "data.yaml"],
            &["apply", "data.yaml"],
            &["eval", "1", "--hiera", "data.yaml"],
        ] {
            let outcome = manifest.ccm(command).run();
            outcome
                .exits(0)
                .complains(&format!("warning[unknown-rule]: unknown rule `{named}` of data `v`"))
                .complains("--> data.yaml:2:5")
                .complains(help);
        }
    }
    // Another way to say the same.
    let world = World::new().beside("data.yaml", "data:\n  v: # @required\n");
    let outcome = world.ccm(["hiera", "parse", "data.yaml"]).run();
    outcome.exits(2).complains("data `v` is required and has no value").never_says("unknown rule");
}

#[test]
fn text_that_looks_like_a_rule_is_text() {
    for before in [
        "text: |\n    some\n    # @require",
        "text: |\n    # @require\n    # @require\n",
        "text: >-\n    some\n\n    # @validate false",
        "text: |2\n      some\n    # @require",
        "text: \"some\n    # @require\"",
        "map:\n    deep: |\n      # @require",
        "list:\n    - |\n      # @require",
        "list:\n    - |\n      # @require\n    - name:",
    ] {
        let world = World::new().beside("data.yaml", format!("data:\n  {before}\n  next:\n"));
        let outcome = world.ccm(["hiera", "parse", "data.yaml"]).run();
        assert_eq!(
            (outcome.exits(0).json().get("next"), outcome.stderr.as_str()),
            (Some(&Value::Null), ""),
            "{before}"
        );
        let world = World::new().beside("data.yaml", format!("data:\n  {before}\n  # @require\n  next:\n"));
        world.ccm(["hiera", "parse", "data.yaml"]).run().exits(2).complains("data `next` is required");
    }
}

/// Nothing is attempted, and the place is told.
#[track_caller]
fn not_attempted(sections: &str, flags: &[&str], place: &str, message: &str, help: &str) {
    let world = seen(World::new(), sections, "1");
    let outcome = world.apply_with(flags);
    outcome.exits(2).complains(message).complains(place).complains(help);
    assert!(world.tree().names().is_empty(), "{outcome}");
}

#[test]
fn data_that_is_wrong_stops_everything_before_it_begins() {
    for (sections, place, message, help) in [
        ("overrides: null", "1:1", "`overrides` must be a map, not nothing", "remove it"),
        ("overrides: [a]", "1:1", "`overrides` must be a map, not a list", ""),
        ("overrides: { a: 1 }", "1:14", "override `a` must be a map, not a number", ""),
        ("overrides: { a: null }", "1:14", "override `a` must be a map, not nothing", ""),
        ("data: [1]", "1:7", "`data` must be a map, not a list", ""),
        ("data: text", "1:7", "`data` must be a map, not a string", ""),
        ("hierarchy: null", "1:1", "`hierarchy` must be a map", ""),
        ("hierarchy: [a]", "1:1", "`hierarchy` must be a map", ""),
        ("hierarchy: { merge: both }", "1:21", "`merge` must be `first`, `deep` or `keys`", ""),
        ("hierarchy: { merge: [deep] }", "1:21", "`merge` must be `first`, `deep` or `keys`", ""),
        ("hierarchy: { order: a }", "1:14", "`order` must be a list, not a string", ""),
        ("hierarchy: { order: [1] }", "1:22", "an entry of `order` must be a string, not a number", ""),
        ("hierarchy: { order: [[a]] }", "1:22", "an entry of `order` must be a string, not a list", ""),
        ("hierarchy: { order: ['${ 1 + }'] }", "1:30", "expected an expression", ""),
        ("hierarchy: { order: ['${ Fact.x }'] }", "1:26", "unknown variable `Fact`", "did you mean `Facts`?"),
        ("hierarchy: { order: ['${ 1 % 0 }'] }", "1:30", "division by zero", ""),
        ("hierarchy: { oder: [a] }", "1:14", "unknown key `hierarchy.oder`", "did you mean `order`?"),
        (
            "hierarchy: { levels: [a] }",
            "1:14",
            "unknown key `hierarchy.levels`",
            "order, merge, lists and directory",
        ),
        ("override: {}", "1:1", "unknown section `override`", "did you mean `overrides`?"),
        ("data: { a: '${ nope }' }", "1:16", "unknown variable `nope`", ""),
        ("data: { a: \"${ lookup('facts.nope') }\" }", "1:23", "facts.nope", ""),
        ("data: { a: 1, a: 2 }", "1:15", "", ""),
        ("overrides: { default: { a: '${ nope }' } }", "1:32", "unknown variable `nope`", ""),
        ("overrides: { unused: { a: '${ nope }' } }", "1:31", "unknown variable `nope`", ""),
        ("overrides: { unused: { a: '${ 1 + }' } }", "1:35", "expected an expression", ""),
    ] {
        not_attempted(sections, &[], &format!("site.yaml:{place}"), message, help);
    }
    not_attempted("data: {}", &["--hiera", "missing.yaml"], "", "cannot read missing.yaml: no such file", "");
    not_attempted(
        "data: {}",
        &["--data", "x"],
        "",
        "--data: an entry without \"=\" is not of the form KEY=VALUE",
        "",
    );
}

#[test]
fn a_file_of_data_that_is_wrong_is_told_with_its_own_name() {
    for (text, place, message) in [
        ("overrides: null", "1:1", "`overrides` must be a map"),
        ("[1]", "1:1", "data is a map with a section `data`, not a list"),
        ("text", "1:1", "data is a map with a section `data`, not a string"),
        ("data: {", "1:", ""),
        ("port: 1", "1:1", "unknown section `port`"),
        ("data: { a: '${ nope }' }", "1:16", "unknown variable `nope`"),
    ] {
        // What follows for those who need the data is not told: they are told where it is wrong.
        let world = seen(World::new().beside("outer.yaml", text), "data: {}", "Data.needed");
        for outcome in [
            world.apply_with(&["--hiera", "outer.yaml"]),
            world.ccm(["apply", "site.yaml"]).env("CCM_HIERA_DATA", "outer.yaml").run(),
            world.ccm(["hiera", "parse", "outer.yaml"]).run(),
            world.ccm(["eval", "1", "--hiera", "outer.yaml"]).run(),
        ] {
            outcome
                .exits(2)
                .complains(message)
                .complains(&format!("outer.yaml:{place}"))
                .never_says("Data.needed");
        }
        assert!(world.tree().names().is_empty());
    }
}

#[test]
fn parse_prints_json_yaml_variables_and_parts() {
    let text = "\
data:
  port: 8080
  motd: |
    it's \"{{{{ 1 }}\"
  users: [{ name: ann, admin: true }, { name: bob }]
  map: { a-b: null, c: yes }
";
    let world = World::new().beside("data.yaml", text);
    let parse = |flags: &[&str]| world.ccm(["hiera", "parse", "data.yaml"].iter().chain(flags)).run();
    let data = json!({
        "port": 8080, "motd": "it's \"{{ 1 }}\"\n", "users": [{ "name": "ann", "admin": true }, { "name": "bob" }],
        "map": { "a-b": null, "c": "yes" },
    });
    assert_eq!(parse(&[]).exits(0).json(), data);
    let yaml = parse(&["--yaml"]).exits(0).stdout.clone();
    let again = World::new().beside(
        "data.yaml",
        format!(
            "data:\n{}",
            yaml.replace("{{", "{{{{").lines().map(|line| format!("  {line}\n")).collect::<String>()
        ),
    );
    assert_eq!(again.ccm(["hiera", "parse", "data.yaml"]).run().exits(0).json(), data, "{yaml}");
    let variables = parse(&["--env"]).exits(0).stdout.clone();
    let script = format!(
        "{variables}\nprintf '%s|%s|%s|%s|%s' \"$HIERA_PORT\" \"$HIERA_MOTD\" \"$HIERA_USERS\" \"$HIERA_MAP_A_B\" \"$HIERA_MAP_C\""
    );
    let shown = crate::support::sh(&script, world.base());
    assert_eq!(shown, "8080|it's \"{{ 1 }}\"\n|[{\"name\":\"ann\",\"admin\":true},{\"name\":\"bob\"}]||yes");
    assert_eq!(parse(&["--query", "users.#(admin==true).name"]).exits(0).json(), json!("ann"));
    assert_eq!(parse(&["--query", "users.#.name"]).exits(0).json(), json!(["ann", "bob"]));
    parse(&["--query", "prot"]).exits(2).complains("`prot`").complains("did you mean `port`?");
    parse(&["--query", "users.#("]).exits(2).complains("--query");
    parse(&["--yaml", "--env"]).exits(2).complains("cannot be used with");
    parse(&["notafact"]).exits(2).complains("KEY=VALUE");
    let piped = world.ccm(["hiera", "parse", "-"]).input("data: { a: 1 }").run();
    assert_eq!(piped.exits(0).json(), json!({ "a": 1 }));
    world
        .ccm(["hiera", "parse", "none.yaml"])
        .run()
        .exits(2)
        .complains("cannot read none.yaml: no such file");
}

#[test]
fn variables_are_named_by_the_path_of_their_value() {
    let text = "data: { a: { port: 1 }, list: [1], caf\u{e9}: x, a_b: 2, a-b: 3, A: { B: 4 } }";
    let world = World::new().beside("data.yaml", text);
    let parse = |query: &str| world.ccm(["hiera", "parse", "data.yaml", "--env", "--query", query]).run();
    for (query, printed) in [
        ("list", "HIERA_LIST='[1]'\n"),
        ("a", "HIERA_A='{\"port\":1}'\nHIERA_A_PORT=1\n"),
        ("a.port", "HIERA_A_PORT=1\n"),
        ("list.0", "HIERA_LIST_0=1\n"),
    ] {
        let outcome = parse(query);
        assert_eq!((outcome.exits(0).stdout.as_str(), outcome.stderr.as_str()), (printed, ""), "{query}");
    }
    let outcome = world.ccm(["hiera", "parse", "data.yaml", "--env"]).run();
    outcome.exits(0).says("HIERA_CAF_=x\n").complains("HIERA_A_B");
    outcome
        .complains("`a_b`")
        .complains("`a-b`")
        .complains("`A.B`")
        .complains("`a`, `A` are all printed as HIERA_A");
    assert_eq!(outcome.stderr.lines().count(), 2, "{outcome}");
}

#[test]
fn parse_reads_a_manifest_and_a_file_of_facts() {
    let world = seen(World::new(), "data: { a: '${ Facts.x }', b: '${ Facts.y.z }' }", "1");
    let outcome = world.ccm(["hiera", "parse", "site.yaml", "x=1", "y.z=[2]"]).run();
    assert_eq!(outcome.exits(0).json(), json!({ "a": 1, "b": [2] }));
}

#[test]
fn eval_sees_the_data_of_a_manifest() {
    let world = seen(World::new(), "data: { a: 1, b: '${ Facts.role }' }", "1")
        .beside("outer.yaml", "data: { c: 3 }");
    let eval =
        |flags: &[&str]| world.ccm(["eval", "Data", "--manifest", "site.yaml"].iter().chain(flags)).run();
    assert_eq!(eval(&["--fact", "role=web"]).exits(0).json(), json!({ "a": 1, "b": "web" }));
    let more = ["--fact", "role=web", "--hiera", "outer.yaml", "--data", "a=2"];
    assert_eq!(eval(&more).exits(0).json(), json!({ "a": 2, "b": "web", "c": 3 }));
    world.ccm(["eval", "1", "--manifest", "none.yaml"]).run().exits(2).complains("cannot read none.yaml");
    assert!(world.tree().names().is_empty(), "nothing is applied");
}

fn ensure(world: &World, content: &str, flags: &[&str]) -> Outcome {
    let own = [
        "ensure",
        "file",
        "$W/x",
        "--owner",
        "$UID",
        "--group",
        "$GID",
        "--mode",
        "0644",
        "--content",
        content,
    ];
    world.ccm(own.iter().chain(flags)).run()
}

#[test]
fn ensure_takes_variables_and_data_from_the_folder() {
    let dotenv = "# a comment\nPLAIN=a b # comment\nexport EXPORTED=1\n  SINGLE='a # \\n \"b\"' # comment\nDOUBLE=\"a \\\"b\\\" \\n\\\\ # c\"\n\
                  EMPTY=\nCOMMENTED= # nothing\nHASH=a#b\nHOME=mine\nEQUALS=a=b\nTEMPLATE={{ 1 }}${ 1 }\n";
    let world = World::new()
        .beside(".env", dotenv)
        .beside(".hiera", "data: { port: 8080, home: '${ Environ.HOME }' }");
    for (name, value) in [
        ("PLAIN", "a b"),
        ("EXPORTED", "1"),
        ("SINGLE", "a # \\n \"b\""),
        ("DOUBLE", "a \"b\" \n\\ # c"),
        ("EMPTY", ""),
        ("COMMENTED", ""),
        ("HASH", "a#b"),
        ("HOME", "mine"),
        ("EQUALS", "a=b"),
        ("TEMPLATE", "{{ 1 }}${ 1 }"),
    ] {
        let outcome = ensure(&world, &format!("${{ Environ.{name} }}"), &[]);
        assert!(outcome.exits(0).stderr.is_empty(), "{outcome}");
        assert_eq!(world.read("x"), value, "{name}");
    }
    ensure(&world, "${ Data.port } ${ Data.home }", &[]).exits(0);
    assert_eq!(world.read("x"), "8080 mine");
    // What is asked for by name goes before what lies there.
    let world = world.beside("other.yaml", "data: { port: 1 }");
    ensure(&world, "${ Data.port }", &["--hiera", "other.yaml"]).exits(0);
    assert_eq!(world.read("x"), "1");
    ensure(&world, "${ Data.port }", &["--data", "port=2"]).exits(0);
    assert_eq!(world.read("x"), "2");
    // They are for this command alone.
    let world = world.manifest("- file: { $W/y: { content: \"${ Environ.PLAIN }\", $OWN, mode: '0644' } }");
    world.apply().exits(2).complains("has no value");
}

#[test]
fn files_of_the_folder_that_are_wrong_stop_ensure() {
    for (name, text, message) in [
        (".env", "A=1\nnonsense\n", ".env:2: not of the form KEY=value"),
        (".env", "A-B=1\n", ".env:1: not the name of a variable"),
        (".env", "A=1\nB='x\n", ".env:2: a quote is not closed on its line"),
        (".env", "A=1\nB=\"x\ny\"\n", ".env:2: a quote is not closed on its line"),
        (".env", "A=1\nB=\"x\"y\n", ".env:2: there is text after the closing quote"),
        (".env", "A='x' y # z\n", ".env:1: there is text after the closing quote"),
        (".env", "A='x''y'\n", ".env:1: there is text after the closing quote"),
        (".hiera", "overrides: null\n", ".hiera:1:1"),
        (".hiera", "data:\n  # @require\n  a:\n", ".hiera:3:3"),
    ] {
        let world = World::new().beside(name, text);
        ensure(&world, "x", &[]).exits(2).complains(message);
        assert!(world.tree().names().is_empty());
    }
    let world = World::new().beside(".env", b"A=\xff\n");
    ensure(&world, "x", &[]).exits(2).complains("not UTF-8");
}

#[test]
fn files_of_the_folder_that_another_could_have_written_are_ignored() {
    let ignored = |world: &World, name: &str| {
        let outcome = ensure(world, "${ Environ.EVIL ?? 'none' } ${ Data.evil ?? 'none' }", &[]);
        outcome.exits(0).complains(&format!("{name} is ignored")).complains("nobody else may write");
        assert_eq!(world.read("x"), "none none");
    };
    for (name, text) in [(".env", "EVIL=1\n"), (".hiera", "data: { evil: 1 }\n")] {
        for mode in [0o664, 0o646, 0o666] {
            let world = World::new().beside(name, text);
            fs::set_permissions(world.base().join(name), fs::Permissions::from_mode(mode)).unwrap();
            ignored(&world, name);
        }
        let world = World::new().beside("elsewhere", text);
        symlink("elsewhere", world.base().join(name)).unwrap();
        ignored(&world, name);
        let world = World::new();
        fs::create_dir(world.base().join(name)).unwrap();
        ignored(&world, name);
        crate::support::sh(&format!("rmdir {name} && mkfifo {name}"), world.base());
        ignored(&world, name);
        if is_root() {
            let world = World::new().beside(name, text);
            std::os::unix::fs::chown(world.base().join(name), Some(NOBODY), Some(NOBODY)).unwrap();
            ignored(&world, name);
        }
    }
}

#[test]
fn a_list_of_the_command_line_replaces_the_list_of_the_data() {
    let world = World::new().manifest("data: { ports: [80] }\nccm: { resources: [] }\n");
    let world = world.beside("secret.yaml", "data:\n  # @validate len(value) > 20\n  password: canary-7\n");
    let eval = world.ccm(["eval", "Data.ports", "--manifest", "site.yaml", "--data", "ports=[443]"]).run();
    assert_eq!(eval.exits(0).json(), serde_json::json!([443]));
    world.apply_with(&["--hiera", "secret.yaml"]).exits(2).complains("password").never_says("canary-7");
    let twice = world.ccm(["eval", "Data.l", "--data", "l=[1]", "--data", "l=[2]"]).run();
    assert_eq!(twice.exits(0).json(), json!([2]), "the last one wins");
}

#[test]
fn an_index_on_the_command_line_leads_into_a_list() {
    let world =
        World::new().manifest("data: { l: [1, { a: 1, b: [2] }], m: { x: 1 } }\nccm: { resources: [] }\n");
    let eval = |flags: &[&str]| {
        let flags = flags.iter().flat_map(|flag| ["--data", flag]);
        world.ccm(["eval", "Data", "--manifest", "site.yaml"].into_iter().chain(flags)).run()
    };
    let data = eval(&["l.0=9", "l.1.a=8", "l.1.b.0=[7]", "m.0=6"]).exits(0).json();
    assert_eq!(data, json!({ "l": [9, { "a": 8, "b": [[7]] }], "m": { "x": 1, "0": 6 } }));
    assert_eq!(eval(&["l={a: 1}"]).exits(0).json()["l"], json!({ "a": 1 }), "a value replaces the list");
    for (flag, list, key) in [("l.2=9", "`l`", "2"), ("l.x=9", "`l`", "x"), ("l.1.b.-1=9", "`l.1.b`", "-1")] {
        let outcome = eval(&[flag]);
        outcome
            .exits(2)
            .complains("--data")
            .complains(&format!("{list} is a list"))
            .complains(&format!("\"{key}\""));
    }
    world.ccm(["eval", "1", "--data", "l=[1]", "--data", "l.1=2"]).run().exits(2).complains("`l` is a list");
}

#[test]
fn an_empty_file_of_data_is_no_data() {
    for text in ["", "# nothing yet\n", "---\n", "data:\n"] {
        let world =
            seen(World::new().beside("outer.yaml", text).beside(".hiera", text), "data: { a: 1 }", "Data");
        world.apply_with(&["--hiera", "outer.yaml"]).exits(0);
        assert_eq!(serde_json::from_str::<Value>(&world.read("x")).unwrap(), json!({ "a": 1 }));
        assert_eq!(world.ccm(["hiera", "parse", "outer.yaml"]).run().exits(0).json(), json!({}));
        ensure(&world, "${ Data }", &[]).exits(0);
        assert_eq!(world.read("x"), "{}");
    }
}

#[test]
fn data_is_not_there_while_it_is_made() {
    for sections in [
        "data: { a: 1, b: '${ Data.a }' }",
        "data: { a: 1, b: \"${ lookup('data.a') }\" }",
        "data: { a: 1, b: \"${ lookup('data.a', 2) }\" }",
        "data: { a: 1, b: '${ data }' }",
        "data: { a: 1 }\nhierarchy: { order: ['x:${ Data.a }'] }",
        "data: { a: 1 }\noverrides: { default: { b: '${ Data.a }' } }",
        "data: { a: 1 }\noverrides: { other: { b: '${ Data.a }' } }",
    ] {
        let world = seen(World::new(), sections, "1");
        let outcome = world.apply();
        outcome.exits(2).complains("is not available while the data is being made").complains("site.yaml:");
        outcome.complains("Facts and Environ");
        let world = world.beside("outer.yaml", sections);
        let outcome = world.ccm(["hiera", "parse", "outer.yaml"]).run();
        outcome.exits(2).complains("is not available while the data is being made");
    }
}

#[test]
fn each_key_comes_from_the_first_entry_that_has_it() {
    let world = World::new().manifest(
        "
data: { a: base, b: base, c: base }
hierarchy: { order: [host, role, default], merge: keys }
overrides:
  default: { a: default, b: default, d: default }
  role: { a: role, b: role }
  host: { a: host }
ccm: { resources: [] }
",
    );
    let outcome = world.ccm(["eval", "Data", "--manifest", "site.yaml"]).run();
    assert_eq!(
        outcome.exits(0).json(),
        serde_json::json!({ "a": "host", "b": "role", "c": "base", "d": "default" })
    );
}

#[test]
fn lists_append_replace_or_are_joined_without_doubles() {
    for (lists, expected) in [("append", "[1,2,2,3]"), ("replace", "[2,3]"), ("unique", "[1,2,3]")] {
        let world = World::new().manifest(&format!(
            "\
data: {{ a: [1, 2] }}
hierarchy: {{ order: [x], merge: deep, lists: {lists} }}
overrides: {{ x: {{ a: [2, 3] }} }}
ccm: {{ resources: [] }}
"
        ));
        let outcome = world.ccm(["eval", "toJSON(Data.a)", "--manifest", "site.yaml"]).run();
        let shown: String = outcome.exits(0).stdout.replace("\\n", "").split_whitespace().collect();
        assert!(shown.contains(expected), "{lists}: {outcome}");
    }
    let world = World::new().manifest("hierarchy: { merge: first, lists: unique }\nccm: { resources: [] }\n");
    world.validate().exits(2).complains("`lists` is for `merge: deep`");
}

#[test]
fn hiera_parse_takes_what_apply_takes() {
    let world = World::new()
        .beside("base.yaml", "data: { port: 80, name: a, hosts: [a] }\n")
        .beside("one.yaml", "data: { port: 81, hosts: [b] }\n")
        .beside("two.yaml", "data: { port: 82 }\n");
    let flags =
        ["hiera", "parse", "base.yaml", "--hiera", "one.yaml", "--hiera", "two.yaml", "--data", "name=z"];
    let outcome = world.ccm(flags).run();
    assert_eq!(outcome.exits(0).json(), serde_json::json!({ "port": 82, "name": "z", "hosts": ["a", "b"] }));
    let outcome = world.ccm(["hiera", "parse", "base.yaml"]).env("CCM_HIERA_DATA", "one.yaml").run();
    assert_eq!(outcome.exits(0).json()["port"], 81);
}

#[test]
fn a_rule_passes_over_what_has_no_value_and_one_in_a_list_is_refused() {
    let data =
        |data: &str| World::new().manifest(&format!("data:\n{data}ccm: {{ resources: [] }}\n")).validate();
    data("  # @validate isIP(value)\n  a:\n").exits(0);
    data("  # @require\n  # @validate isIP(value)\n  a:\n").exits(2).complains("1 error in");
    data("  # @validate isIP(value)\n  a: x\n").exits(2).complains("data `a` is not valid");
    for list in ["  a:\n    # @validate isIP(value)\n    - x\n", "  a:\n    - x # @require\n"] {
        data(list).exits(2).complains("a rule inside a list is not checked").complains("put it on `a`");
    }
}

/// A document with a folder of data beside it.
fn with_folder(merge: &str) -> World {
    let document = "
data: { port: 80, from: base, modules: [base] }
hierarchy:
  folder: data
  order: [\"role:${ lookup('facts.role') }\", \"os:${ lookup('facts.kin') }\", default]
  merge: MERGE
overrides:
  os:debian: { from: overrides }
";
    World::new()
        .beside("data.yaml", document.replace("MERGE", merge))
        .beside("data/role/web.yaml", "port: 8080\nmodules: [web]\nname: \"${ lookup('facts.role') }-1\"\n")
        .beside("data/os/debian.yaml", "from: file\nmodules: [deb]\n")
        .beside("data/default.yaml", "from: default\nrest: true\n")
        .beside("secret.yaml", "port: 666\n")
}

#[test]
fn entries_of_the_order_are_also_files_of_a_folder() {
    for (merge, facts, expected) in [
        (
            "first",
            vec!["role=web"],
            json!({ "port": 8080, "from": "base", "modules": ["web"], "name": "web-1" }),
        ),
        ("first", vec!["kin=debian"], json!({ "port": 80, "from": "overrides", "modules": ["deb"] })),
        (
            "deep",
            vec!["role=web", "kin=debian"],
            json!({ "port": 8080, "from": "default", "modules": ["base", "web", "deb"], "name": "web-1", "rest": true }),
        ),
        (
            "keys",
            vec!["role=web", "kin=debian"],
            json!({ "port": 8080, "from": "overrides", "modules": ["web"], "name": "web-1", "rest": true }),
        ),
        (
            "first",
            vec!["role=../secret"],
            json!({ "port": 80, "from": "default", "modules": ["base"], "rest": true }),
        ),
        (
            "first",
            vec!["role=none"],
            json!({ "port": 80, "from": "default", "modules": ["base"], "rest": true }),
        ),
    ] {
        let world = with_folder(merge);
        let outcome = world.ccm(["hiera", "parse", "data.yaml"].iter().chain(&facts)).run();
        outcome.exits(0);
        assert_eq!(outcome.json(), expected, "{merge} {facts:?}");
    }
}

#[test]
fn the_folder_of_a_hierarchy_lies_beside_its_manifest() {
    let world = World::new().beside("site/data/role/web.yaml", "port: 8080\n").beside(
        "site/manifest.yaml",
        "data: { port: 80 }\nhierarchy: { folder: data, order: [\"role:web\"] }\nccm: { resources: [] }\n",
    );
    world.ccm(["eval", "Data.port", "--manifest", "site"]).run().exits(0).says("8080");
    world.ccm(["validate", "site"]).run().exits(0);
}

#[test]
fn what_is_wrong_with_a_folder_or_a_file_in_it_is_told_at_its_place() {
    for (files, document, said) in [
        (
            vec![],
            "hierarchy: { folder: nowhere }",
            vec!["data.yaml:1:22", "there is no directory", "nowhere"],
        ),
        (vec![], "hierarchy: { folder: [a] }", vec!["`folder` must be the path of a directory, not a list"]),
        (
            vec![("data/default.yaml", "- a\n")],
            "hierarchy: { folder: data }",
            vec!["data/default.yaml:1:1", "the data of an entry is a map, not a list"],
        ),
        (
            vec![("data/default.yaml", "a: 1\na: 2\n")],
            "hierarchy: { folder: data }",
            vec!["data/default.yaml:2:1"],
        ),
        (
            vec![("data/default.yaml", "a: 1\nb: \"${ lookup('facts.nope') }\"\n")],
            "hierarchy: { folder: data }",
            vec!["data/default.yaml:2:", "nope"],
        ),
    ] {
        let world = files
            .iter()
            .fold(World::new().beside("data.yaml", document), |world, (name, text)| world.beside(name, text));
        let world = seen(world, "data: {}", "Data.needed");
        for arguments in
            [&["hiera", "parse", "data.yaml"][..], &["apply", "site.yaml", "--hiera", "data.yaml"]]
        {
            let outcome = world.ccm(arguments).run();
            outcome.exits(2).never_says("Data.needed");
            for said in &said {
                outcome.complains(said);
            }
        }
    }
}

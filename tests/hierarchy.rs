//! Hierarchies that are valid and probably not meant, and data that cannot be merged.

use crate::{messages::check, support::World};

#[test]
fn hierarchies_that_select_nothing_are_reported() {
    check(
        &[
            (
                "data: { port: 1 }\noverrides: { web: { port: 2 } }\nccm: { resources: [] }\n",
                &[
                    "warning 2:1 `overrides` has no effect without `hierarchy`, except its key `default` | add `hierarchy: { order: [...] }` with the keys to use, in their order",
                ],
            ),
            ("data: { port: 1 }\noverrides: { default: { port: 2 } }\nccm: { resources: [] }\n", &[]),
            (
                "data: { port: 1 }\nhierarchy: { order: ['role:web'] }\noverrides: { 'role:Web': { port: 2 } }\nccm: { resources: [] }\n",
                &[
                    "warning 3:14 override `role:Web` is not used: this machine has the entry `role:web` | did you mean `role:web`?",
                ],
            ),
            (
                "data: { port: 1 }\nhierarchy: { order: ['host:web1'] }\noverrides: { 'host:web2': { port: 2 } }\nccm: { resources: [] }\n",
                &[],
            ),
            (
                "hierarchy: { order: [Facts.os] }\nccm: { resources: [] }\n",
                &[
                    "warning 1:22 the entry `Facts.os` is the name of a fact, not its value | write `${ Facts.os }`, or with a prefix `os:${ Facts.os }`",
                ],
            ),
            (
                "data: { port: 1, web: { tls: 1 } }\nhierarchy: { order: [x] }\noverrides: { x: { Port: 2, web: { tsl: 2 } } }\nccm: { resources: [] }\n",
                &[
                    "warning 3:19 `Port` overrides nothing: the data has no such key | did you mean `port`?",
                    "warning 3:35 `web.tsl` overrides nothing: the data has no such key | did you mean `tls`?",
                ],
            ),
            (
                "hierarchy:\n  order: ['role:web', default]\n  directory: hiera\nccm: { resources: [] }\n",
                &[
                    "warning 3:14 no entry of `order` can select hiera/rloe/web.yaml | did you mean `role`?",
                    "warning 3:14 hiera/role/wbe.yaml is not used: this machine has the entry `role:web` | did you mean `role:web`?",
                    "warning 1:1 this file holds data: its key `data` becomes `Data.data` | remove `data:` and one level of indentation",
                ],
            ),
        ],
        || {
            World::new()
                .beside("hiera/rloe/web.yaml", "a: 1\n")
                .beside("hiera/role/wbe.yaml", "a: 1\n")
                .beside("hiera/default.yaml", "data:\n  a: 1\n")
        },
    );
}

#[test]
fn misspelt_fact_in_order_is_reported() {
    let world =
        World::new().manifest("hierarchy: { order: ['os:${ Facts.platfrom }'] }\nccm: { resources: [] }\n");
    world
        .validate()
        .exits(0)
        .complains("`Facts.platfrom` does not exist")
        .complains("did you mean `Facts.platform`?");
    let lookup = World::new()
        .manifest("hierarchy: { order: [\"os:${ lookup('facts.platfrom') }\"] }\nccm: { resources: [] }\n");
    lookup
        .validate()
        .exits(0)
        .complains("`facts.platfrom` does not exist")
        .complains("did you mean `platform`?");
    let silent = World::new()
        .manifest("hierarchy: { order: ['os:${ Facts.platfrom ?? \"\" }', 'r:${ Facts.role }'] }\nccm: { resources: [] }\n");
    assert_eq!(silent.validate().stderr, "");
}

#[test]
fn values_of_different_kinds_do_not_merge() {
    check(
        &[
            (
                "data: { web: { port: 1 } }\nhierarchy: { order: [x], merge: deep }\noverrides: { x: { web: [1] } }\nccm: { resources: [] }\n",
                &[
                    "error 3:24 data `web` is a map in `data` and a list in override `x`: they cannot be merged | use the same kind of value in both; null replaces anything",
                ],
            ),
            (
                "data: { web: { port: 1 } }\nhierarchy: { order: [x], merge: deep }\noverrides: { x: { web: null } }\nccm: { resources: [] }\n",
                &[],
            ),
            (
                "data: { web: [1] }\nccm:\n  resources:\n    - apply: [{ child.yaml: {} }]\n",
                &[
                    "error 1:7 data `web` is a map in this manifest and a list in the data that it is given: they cannot be merged | use the same kind of value in both; null replaces anything",
                ],
            ),
        ],
        || World::new().beside("child.yaml", "data: { web: { port: 1 } }\nccm: { resources: [] }\n"),
    );
}

#[test]
fn data_of_the_command_line_overrides_what_an_included_manifest_is_given_and_has() {
    let child =
        "data: { b: own }\nccm:\n  resources:\n    - exec: [{ \"/bin/echo ${ Data.a } ${ Data.b }\": {} }]\n";
    let world = World::new()
        .beside("child.yaml", child)
        .manifest("- apply: [{ child.yaml: { data: { a: given } } }]\n");
    world
        .ccm(["apply", "site.yaml", "--data", "a=1", "--data", "b=2"])
        .run()
        .exits(0)
        .says("exec#/bin/echo 1 2 executed");
}

#[test]
fn data_that_is_missing_names_the_data_file_that_does_not_exist() {
    let hierarchy = "hierarchy: { order: ['role:${ Environ.ROLE }', default], directory: hiera }\n";
    let use_it = "ccm: { resources: [ exec: [ { 'echo ${ Data.port }': {} } ] ] }\n";
    let required = "data:\n  # @require\n  port:\n";
    for (data, message) in
        [("", "`Data.port` has no value"), (required, "data `port` is required and has no value")]
    {
        let world = World::new().beside("hiera/default.yaml", "other: 1\n");
        let world = world.manifest(&format!("{data}{hierarchy}{use_it}"));
        let outcome = world.ccm(["validate", "site.yaml"]).env("ROLE", "web").run();
        outcome
            .exits(2)
            .complains(message)
            .complains("= help: the data file hiera/role/web.yaml does not exist");
        let world = world.beside("hiera/role/web.yaml", "port: 80\n");
        world.ccm(["validate", "site.yaml"]).env("ROLE", "web").run().exits(0);
    }
}

#[test]
fn included_role_without_its_data_file_names_the_file() {
    let role = "hierarchy: { order: ['host:${ Environ.HOST }'], directory: data }\nccm: { resources: [ exec: [ { 'echo ${ Data.port }': {} } ] ] }\n";
    let world =
        World::new().beside("roles/web/manifest.yaml", role).beside("roles/web/data/x.yaml", "a: 1\n");
    let world = world.manifest("- apply: [ { roles/web: { } } ]\n");
    let outcome = world.ccm(["validate", "site.yaml"]).env("HOST", "h1").run();
    outcome.exits(2).complains("the data file roles/web/data/host/h1.yaml does not exist");
}

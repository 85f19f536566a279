//! Manifests, data and templates from a real NATS server.

use serde_json::json;

use crate::support::{
    World,
    nats::{DirectGets, NatsClient, NatsServer},
    sh,
};

/// The bytes of a bundle with one file in it.
fn bundle(world: &World, content: &str) -> Vec<u8> {
    let folder = world.base().join("bundle");
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = world.fill(&format!(
        "- file:\n    - $W/motd: {{ ensure: present, content: \"{content}\", $OWN, mode: \"0644\" }}\n"
    ));
    std::fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    // What cannot be compressed, so that there are several chunks.
    let noise: Vec<u8> =
        (0..200_000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    std::fs::write(folder.join("noise"), noise).unwrap();
    sh("tar czf ../site.tar.gz .", &folder);
    std::fs::read(world.base().join("site.tar.gz")).unwrap()
}

const BOTH: [DirectGets; 2] = [DirectGets::Allowed, DirectGets::Refused];

#[test]
fn a_bundle_is_applied_from_an_object_store_with_and_without_direct_gets() {
    for direct in BOTH {
        let world = World::new();
        let Some(server) = NatsServer::start(&world) else { return };
        let mut client = server.client();
        client.make_objects("CCM", direct);
        for content in ["one", "two"] {
            client.put_object("CCM", "web/site.tar.gz", &bundle(&world, content), 16 * 1024);
            world.ccm(["apply", "obj://CCM/web/site.tar.gz"]).run().exits(0);
            assert_eq!(world.read("motd"), content, "{direct:?}");
        }
    }
}

#[test]
fn what_is_wrong_with_an_object_is_said() {
    let world = World::new();
    let Some(server) = NatsServer::start(&world) else { return };
    let mut client = server.client();
    client.make_objects("CCM", DirectGets::Allowed);
    client.put_object("CCM", "gone.tar.gz", b"x", 10);
    client.delete_object("CCM", "gone.tar.gz");
    let whole = json!({ "nuid": "N", "size": 1, "chunks": 1, "digest": "SHA-256=AAAA" });
    client.put("$O.CCM.C.N", None, b"x");
    client.describe("CCM", "torn.yaml", &whole);
    client.describe("CCM", "empty.yaml", &json!({ "nuid": "M", "size": 1, "chunks": 1, "digest": "" }));
    client.describe(
        "CCM",
        "large.yaml",
        &json!({ "nuid": "M", "size": 1_u64 << 40, "chunks": 1, "digest": "" }),
    );
    for (key, problem) in [
        ("CCM/none.yaml", "it is not there, or was deleted"),
        ("CCM/gone.tar.gz", "it is not there, or was deleted"),
        ("CCM/torn.yaml", "does not have the digest"),
        ("CCM/empty.yaml", "replaced while it was fetched"),
        ("CCM/large.yaml", "more than the"),
        ("NONE/site.yaml", "there is no stream \"OBJ_NONE\""),
    ] {
        let outcome = world.ccm(["apply", &format!("obj://{key}")]).run();
        outcome.exits(2).complains(problem).complains(&format!("obj://{key}"));
    }
}

#[test]
fn data_comes_from_a_key_and_templates_ask_for_others() {
    for direct in BOTH {
        let world = World::new().files(
            "- $W/a: { content: \"${ Data.port } ${ kvGet('data', 'web.motd') } ${ kvGet('data', 'none', 'default') }\" }\n\
             - $W/b: { content: \"${ jinja('b.j2') }\" }",
        );
        let world = world.beside("b.j2", "{{ kvGet('data', 'web.motd') }} {{ kvGet('data', 'none', 1) }}\n");
        let Some(server) = NatsServer::start(&world) else { return };
        let mut client = server.client();
        client.make_keys("data", direct);
        client.put_key("data", "common", "data: { port: 80 }\n");
        client.put_key("data", "web.motd", "hello");
        world.ccm(["apply", "site.yaml", "--hiera", "kv://data/common"]).run().exits(0);
        assert_eq!(world.read("a"), "80 hello default");
        assert_eq!(world.read("b"), "hello 1\n");
        world.ccm(["hiera", "parse", "kv://data/common"]).run().exits(0).says("\"port\": 80");

        client.delete_key("data", "web.motd");
        let outcome = world.ccm(["apply", "site.yaml", "--hiera", "kv://data/common"]).run();
        outcome.exits(1).says("kv://data/web.motd is not there, or was deleted").says("site.yaml:");
        let outcome = world.ccm(["apply", "site.yaml", "--hiera", "kv://data/none"]).run();
        outcome.exits(2).complains("cannot read kv://data/none");
    }
}

#[test]
fn documents_of_a_server_are_from_an_address_like_any_other() {
    let world = World::new().beside("data/default.yaml", "a: local\n").manifest("[]");
    let Some(server) = NatsServer::start(&world) else { return };
    let mut client = server.client();
    client.make_keys("DATA", DirectGets::Allowed);
    client.make_objects("DATA", DirectGets::Allowed);
    let mut put = |name: &str, text: &str| {
        client.put_key("DATA", name, text);
        client.put_object("DATA", name, text.as_bytes(), 1024);
    };
    put("fine", "data: { a: 123 }\n");
    put("curious", "data: { a: '${ Environ.TOKEN }' }\n");
    put("folder", "hierarchy: { folder: data }\n");
    for store in ["kv", "obj"] {
        let parse = |name: &str, flags: &[&str]| {
            let url = format!("{store}://DATA/{name}");
            world.ccm(["hiera", "parse", &url].iter().chain(flags)).env("TOKEN", "c4n4ry").run()
        };
        parse("fine", &["--max-input-size", "17"]).exits(0).says("\"a\": 123");
        parse("fine", &["--max-input-size", "16"]).exits(2).complains("17 bytes, more than the 16");
        parse("curious", &[]).exits(2).complains("in data that comes from an address").never_says("c4n4ry");
        parse("folder", &[]).exits(2).complains("this came alone, from an address");
    }
}

#[test]
fn what_cannot_be_asked_fails_only_the_resource_that_asks() {
    let world = World::new()
        .files(
            "- $W/a: { content: a }\n\
             - $W/b: { content: \"${ kvGet('DATA', 'other') }\" }\n\
             - $W/c: { content: \"${ jinja('c.j2') }\" }\n\
             - $W/d: { content: \"${ registrations('prod').PrometheusFileSD() }\" }\n\
             - $W/e: { content: e, control: { if: \"kvGet('DATA', 'other') == 'x'\" } }\n\
             - $W/f: { content: f }",
        )
        .beside("c.j2", "{{ kvGet('DATA', 'other') }}\n");
    let Some(mut server) = NatsServer::start(&world) else { return };
    server.client().make_keys("DATA", DirectGets::Allowed);
    let applied = |problem: &str| {
        world.apply().exits(1).says(problem);
        let found = ["a", "b", "c", "d", "e", "f"].map(|name| world.path(name).exists());
        assert_eq!(found, [true, false, false, false, false, true]);
    };
    applied("kv://DATA/other is not there, or was deleted");
    for name in ["a", "f"] {
        std::fs::remove_file(world.path(name)).unwrap();
    }
    server.kill();
    applied("cannot connect to NATS");
    // Nobody is asked for the manifest to be judged, and what is wrong with a question itself is told then.
    world.validate().exits(0);
    world.ccm(["apply", "site.yaml", "--render"]).run().exits(0).says("kvGet('DATA', 'other')");
    let world = World::new().files("- $W/a: { content: \"${ kvGet('a.b', 'c') }\" }");
    world.validate().exits(2).complains("\"a.b\" is not the name of a bucket");
    // A name has to be known before anything is applied.
    let world =
        World::new().files("- \"$W/${ kvGet('DATA', 'other') }\": { content: x }\n- $W/b: { content: b }");
    world.apply().exits(2).complains("kvGet");
    assert!(!world.path("b").exists());
}

#[test]
fn a_server_that_is_away_is_an_error_and_asked_once() {
    let world = World::new()
        .files("- $W/a: { content: \"${ kvGet('a', 'b') }${ kvGet('a', 'c') }${ kvGet('a', 'd') }\" }");
    let Some(mut server) = NatsServer::start(&world) else { return };
    server.kill();
    world.apply().exits(1).says("cannot connect to NATS at nats://127.0.0.1");
    world.ccm(["apply", "obj://A/b"]).run().exits(2).complains("cannot connect to NATS");
    // A server that takes connections and says nothing is given its time once, and not for every key.
    let listener = std::net::TcpListener::bind(("127.0.0.1", server.port())).unwrap();
    world.apply().exits(1).says("cannot connect to NATS").says("no answer within 5s");
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.incoming().map_while(Result::ok).count(), 1);
}

#[test]
fn a_wrong_login_is_told_in_words_and_without_the_password() {
    let world = World::new();
    let Some(server) = NatsServer::with(&world, &["--user", "ccm", "--pass", "right"]) else { return };
    let mut client = NatsClient::connect(server.port(), &json!({ "user": "ccm", "pass": "right" }));
    client.make_keys("data", DirectGets::Allowed);
    client.put_key("data", "k", "v");
    for (login, is_right) in [
        (json!({}), false),
        (json!({ "user": "ccm", "password": "hunter2" }), false),
        (json!({ "token": "hunter2" }), false),
        (json!({ "user": "ccm", "password": "right" }), true),
    ] {
        server.context(&world, "CCM", &login);
        let outcome = world.ccm(["eval", "kvGet('data', 'k')"]).run();
        if is_right {
            outcome.exits(0).says("v");
        } else {
            outcome.exits(2).complains("NATS refuses the login to nats://127.0.0.1").never_says("hunter2");
        }
    }
}

#[test]
fn the_context_is_chosen_by_flag_then_variable_then_default() {
    let world = World::new();
    let Some(server) = NatsServer::start(&world) else { return };
    let mut client = server.client();
    client.make_keys("data", DirectGets::Allowed);
    client.put_key("data", "k", "v");
    let gone = world.base().join("home/.config/nats/context/CCM.json");
    std::fs::rename(&gone, world.base().join("elsewhere.json")).unwrap();
    let eval = ["eval", "kvGet('data', 'k')"];
    let none = world.ccm(eval).run();
    none.exits(2).complains("there is no NATS context \"CCM\"").complains("NATS_CONTEXT");
    let path = world.base().join("elsewhere.json").to_string_lossy().into_owned();
    world.ccm(eval).env("NATS_CONTEXT", &path).run().exits(0).says("v");
    world.ccm(eval.iter().chain(&["--context", &path])).env("NATS_CONTEXT", "none").run().exits(0);
    server.context(&world, "other", &json!({}));
    world.ccm(eval.iter().chain(&["--context", "other"])).run().exits(0).says("v");
}

#[test]
fn nothing_of_nats_is_touched_where_nothing_asks_for_it() {
    let world = World::new().files("- $W/a: { content: x }");
    let folder = world.base().join("home/.config/nats/context");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("CCM.json"), "not a context").unwrap();
    world.apply().exits(0);
}

//! The agent with encrypted data: it decrypts at each run, keeps only ciphertext, and goes on when its key is gone.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    agent::get,
    support::{
        Agent, World,
        encrypted::Author,
        http::{Reply, Server},
        nats::{DirectGets, NatsServer},
    },
};

const FIRST: &str = "c4n4ry-agent-one";
const SECOND: &str = "c4n4ry-agent-two";

/// Runs the agent with an identity in a file.
fn agent<'w>(world: &'w World, identity: &Path) -> Agent<'w> {
    Agent::start_with(world, &[("SOPS_AGE_KEY_FILE", identity.to_str().unwrap())])
}

fn manifest(world: &World) -> String {
    world.fill("- file:\n    - $W/a: { content: \"${ Data.password }\", $OWN, mode: '0600' }\n")
}

fn configure(world: &World, manifest: &str, more: &str) {
    let config = format!("manifests: [{manifest}]\ninterval: 1h\npoll: 200ms\nsplay: 0s\n{more}");
    fs::write(world.base().join("agent.yaml"), config).unwrap();
}

/// Nothing that the agent keeps or prints has a decrypted value. Only the managed file has it.
#[track_caller]
fn reveals_nothing(world: &World, agent: &Agent) {
    let status = agent.status().to_string();
    let mut kept = vec![("the log".to_owned(), agent.log()), ("the status".to_owned(), status)];
    let mut directories: Vec<PathBuf> = vec![world.base().to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.is_file() && path != world.path("a") {
                let content = fs::read(&path).unwrap_or_default();
                kept.push((path.display().to_string(), String::from_utf8_lossy(&content).into_owned()));
            }
        }
    }
    for (name, content) in kept {
        assert!(!content.contains("c4n4ry"), "{name}: {content}");
    }
}

#[test]
fn missing_key_leaves_the_last_state_and_shows_in_status_and_metrics() {
    let (world, author) = (World::new(), Author::new());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let data = Arc::new(Mutex::new(author.data(&[("password", FIRST, "str")])));
    let (copy, site) = (Arc::clone(&data), manifest(&world));
    let server = Server::start(move |request| match request.path.as_str() {
        "/data.yaml" => Reply::body(copy.lock().unwrap_or_else(PoisonError::into_inner).clone().into_bytes()),
        _ => Reply::body(site.clone().into_bytes()),
    });
    let more = format!("external_data_url: {}\nmetrics: 127.0.0.1:{port}\n", server.url("/data.yaml"));
    configure(&world, &server.url("/site.yaml"), &more);
    let identity = author.identity(&world);
    let agent = agent(&world, &identity);
    agent.makes("a", FIRST);
    reveals_nothing(&world, &agent);

    // The key is gone: cached data does not open, and neither does new data.
    let away = world.base().join("away");
    fs::rename(&identity, &away).unwrap();
    world.ccm(["agent", "run"]).run().exits(1);
    agent.until("an error in the status", || {
        let status = agent.status();
        status["manifests"][0]["error"].as_str().is_some_and(|error| error.contains("SOPS_AGE_KEY_FILE"))
    });
    agent.until("the metric", || {
        get(port, "/metrics")
            .lines()
            .any(|line| line.starts_with("choria_ccm_agent_manifest_not_applied{") && line.ends_with(" 1"))
    });
    *data.lock().unwrap() = author.data(&[("password", SECOND, "str")]);
    agent.says("new content is refused", 1);
    agent.tells("/data/stale", true);
    assert_eq!(fs::read_to_string(world.path("a")).unwrap(), FIRST);

    // With the key, the data that waited is applied without another download.
    fs::rename(&away, &identity).unwrap();
    world.ccm(["agent", "run"]).run().exits(0);
    agent.makes("a", SECOND);
    agent.tells("/data/stale", false);
    agent.until("the metric", || {
        get(port, "/metrics")
            .lines()
            .any(|line| line.starts_with("choria_ccm_agent_manifest_not_applied{") && line.ends_with(" 0"))
    });
    reveals_nothing(&world, &agent);
    assert!(!get(port, "/metrics").contains("c4n4ry"));
}

#[test]
fn data_for_another_key_is_refused_and_the_last_data_stays() {
    let (world, author, other) = (World::new(), Author::new(), Author::new());
    let layer = world.base().join("layers/default.yaml");
    fs::create_dir_all(layer.parent().unwrap()).unwrap();
    fs::write(&layer, author.document(&[("password", FIRST, "str")])).unwrap();
    let site =
        "data: { password: none }\nhierarchy: { order: [default], directory: layers }\nccm:\n  resources:\n";
    let resources: String = manifest(&world).lines().map(|line| format!("    {line}\n")).collect();
    fs::write(world.base().join("site.yaml"), format!("{site}{resources}")).unwrap();
    configure(&world, "site.yaml", "");
    let identity = author.identity(&world);
    let agent = agent(&world, &identity);
    agent.makes("a", FIRST);
    fs::write(&layer, other.document(&[("password", SECOND, "str")])).unwrap();
    world.ccm(["agent", "run"]).run().exits(1);
    agent.says("no identity opens this encrypted document", 1);
    assert_eq!(fs::read_to_string(world.path("a")).unwrap(), FIRST);
    // A key that changes is read at the next run.
    other.identity(&world);
    world.ccm(["agent", "run"]).run().exits(0);
    agent.makes("a", SECOND);
    reveals_nothing(&world, &agent);
}

#[test]
fn data_in_a_bucket_is_decrypted_and_cached_as_ciphertext() {
    let (world, author) = (World::new(), Author::new());
    let Some(server) = NatsServer::start(&world) else { return };
    let mut client = server.client();
    client.make_objects("SITE", DirectGets::Allowed);
    client.make_keys("DATA", DirectGets::Allowed);
    client.put_object("SITE", "site.yaml", manifest(&world).as_bytes(), 1024);
    client.put_key("DATA", "common", &author.data(&[("password", FIRST, "str")]));
    configure(&world, "obj://SITE/site.yaml", "external_data_url: kv://DATA/common\n");
    let identity = author.identity(&world);
    let agent = agent(&world, &identity);
    agent.makes("a", FIRST);
    client.put_key("DATA", "common", &author.data(&[("password", SECOND, "str")]));
    agent.makes("a", SECOND);
    reveals_nothing(&world, &agent);
}

#[test]
fn identity_in_the_state_directory_opens_data() {
    let (world, author) = (World::new(), Author::new());
    fs::write(world.base().join("data.yaml"), author.data(&[("password", FIRST, "str")])).unwrap();
    fs::write(world.base().join("site.yaml"), manifest(&world)).unwrap();
    configure(&world, "site.yaml", "external_data_url: data.yaml\n");
    fs::rename(author.identity(&world), world.state().join("identity")).unwrap();
    let agent = Agent::start(&world);
    agent.makes("a", FIRST);
    reveals_nothing(&world, &agent);
}

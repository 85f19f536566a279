//! The agent in a network of its own, which is taken away and given back.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use serde_json::json;

use crate::support::{
    Agent, World, has,
    http::{Reply, Server},
    is_root,
    nats::{Cable, DirectGets, NatsServer},
    skip,
};

/// A network namespace with one interface, whose other end is here. It is gone with the process that holds it, and that
/// ends with the test.
struct Network {
    holder: Child,
    here: Ipv4Addr,
}

impl Network {
    fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !is_root() || !has("ip") || !has("nsenter") {
            return None;
        }
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "sh", "-c", "echo; exec cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = unshare.spawn().unwrap();
        // It has its namespace when it says something.
        let is_there = std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut [0]).is_ok();
        // Addresses for trials between networks; four for each test.
        let number = std::process::id().wrapping_mul(8) + COUNT.fetch_add(1, Ordering::Relaxed);
        let first = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + number % 0x7FFF * 4;
        let network = Self { holder, here: (first + 1).into() };
        let (pid, name) = (network.holder.id(), format!("ccm{}", number % 0x7FFF));
        let is_made = is_there
            && ip(&["link", "add", &name, "type", "veth", "peer", "name", "eth0", "netns", &pid.to_string()])
            && ip(&["address", "add", &format!("{}/30", network.here), "dev", &name])
            && ip(&["link", "set", &name, "up"])
            && network.inside(&[
                "address",
                "add",
                &format!("{}/30", Ipv4Addr::from(first + 2)),
                "dev",
                "eth0",
            ])
            && network.inside(&["link", "set", "eth0", "up"]);
        if !is_made {
            skip("needs network namespaces");
        }
        is_made.then_some(network)
    }

    /// What starts a program in it.
    fn wrapper(&self) -> [String; 2] {
        ["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", self.holder.id())]
    }

    fn inside(&self, words: &[&str]) -> bool {
        let [nsenter, namespace] = self.wrapper();
        let done = Command::new(nsenter).args([&namespace, "ip"]).args(words).output();
        done.is_ok_and(|done| done.status.success())
    }

    /// Pulls the cable out: what is sent is lost, and nobody is told.
    fn cut(&self) {
        assert!(self.inside(&["link", "set", "eth0", "down"]));
    }

    fn join(&self) {
        assert!(self.inside(&["link", "set", "eth0", "up"]));
    }

    /// Lays a way from it to a port of this machine, and gives its beginning.
    fn way_to(&self, port: u16) -> String {
        let listener = TcpListener::bind((self.here, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let _ = Cable::from(listener, port);
        address
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).output().is_ok_and(|done| done.status.success())
}

#[test]
fn a_network_that_is_taken_away_comes_back_and_what_changed_meanwhile_is_noticed() {
    let world = World::new();
    let (Some(network), Some(nats)) = (Network::new(), NatsServer::start(&world)) else { return };
    let manifest = |name: &str, content: &str| {
        world.fill(&format!("- file:\n    - $W/{name}: {{ content: \"{content}\", $OWN, mode: '0644' }}\n"))
    };
    let mut client = nats.client();
    client.make_objects("SITE", DirectGets::Allowed);
    client.put_object("SITE", "site.yaml", manifest("n", "one").as_bytes(), 1024);
    let page: &'static Mutex<String> = Box::leak(Box::new(Mutex::new(manifest("h", "one"))));
    let server = Server::start(|_| {
        Reply::body(page.lock().unwrap_or_else(PoisonError::into_inner).clone().into_bytes())
    });
    let port = server.url("").rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap();
    let (http, server_way) = (network.way_to(port), network.way_to(nats.port()));
    nats.context(&world, "CCM", &json!({ "url": format!("nats://{server_way}") }));
    let config = format!(
        "manifests: ['http://{http}/site.yaml', 'obj://SITE/site.yaml']\ninterval: 1h\npoll: 1s\nsplay: 0s\n"
    );
    fs::write(world.base().join("agent.yaml"), config).unwrap();
    let wrapper = network.wrapper();
    let agent = Agent::start_under(&world, &wrapper.each_ref().map(String::as_str));
    agent.makes("h", "one");
    agent.makes("n", "one");
    for (times, before, after) in [(1, "one", "two"), (2, "two", "three")] {
        network.cut();
        *page.lock().unwrap() = manifest("h", after);
        client.put_object("SITE", "site.yaml", manifest("n", after).as_bytes(), 1024);
        agent.says("the connection to NATS is lost", times);
        agent.until("both to be away", || {
            let status = agent.status();
            let manifests = status["manifests"].as_array().unwrap();
            manifests.iter().all(|manifest| manifest["stale"] == true)
        });
        // What was good stays in force meanwhile.
        for name in ["h", "n"] {
            fs::write(world.path(name), "drift").unwrap();
            agent.makes(name, before);
        }
        network.join();
        for name in ["h", "n"] {
            agent.makes(name, after);
        }
    }
    assert_eq!(agent.end().0, Some(0));
}

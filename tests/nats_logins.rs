//! Every way to log in to a NATS server that a context can name: the right one, and wrong ones, which are told in words.

use std::fs;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::support::{Agent, World, http::Identity, nats::NatsServer};

/// What nkeys are for, by the first byte of the public key.
const OPERATOR: u8 = 14 << 3;
const ACCOUNT: u8 = 0;
const USER: u8 = 20 << 3;
/// What seeds begin with.
const SEED: u8 = 18 << 3;

/// An nkey: a pair of keys, and how they are written.
struct Nkey {
    pair: Ed25519KeyPair,
    seed: String,
    public: String,
}

impl Nkey {
    /// Makes the key that a number leads to.
    fn new(kind: u8, number: u8) -> Self {
        let raw = [number; 32];
        let pair = Ed25519KeyPair::from_seed_unchecked(&raw).unwrap();
        let seed = written(&[&[SEED | (kind >> 5), (kind & 31) << 3], raw.as_slice()].concat());
        let public = written(&[&[kind], pair.public_key().as_ref()].concat());
        Self { pair, seed, public }
    }

    /// Says of another key what it is: a token as `nsc` makes them.
    fn signs(&self, subject: &str, nats: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(&json!({ "typ": "JWT", "alg": "ed25519-nkey" }));
        let claims = json!({
            "jti": "X", "iat": 1_700_000_000, "iss": self.public, "name": "test", "sub": subject, "nats": nats,
        });
        let text = format!("{head}.{}", part(&claims));
        let signature = URL_SAFE_NO_PAD.encode(self.pair.sign(text.as_bytes()));
        format!("{text}.{signature}")
    }
}

/// Writes bytes and their checksum in base 32.
fn written(bytes: &[u8]) -> String {
    let mut crc = 0_u16;
    for byte in bytes {
        crc ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
        }
    }
    let bytes = [bytes, &crc.to_le_bytes()].concat();
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let letter = |five: &[u8]| {
        let value = (0..5).fold(0, |value, bit| value << 1 | five.get(bit).copied().unwrap_or(0));
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::from(value)])
    };
    bits.chunks(5).map(letter).collect()
}

/// A file with the login of a user.
fn creds(token: &str, user: &Nkey) -> String {
    format!(
        "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        user.seed
    )
}

/// Logs in with a context and uses the stream of registrations.
#[track_caller]
fn works(world: &World, server: &NatsServer, context: &Value) {
    server.context(world, "CCM", context);
    world.ccm(["registration", "init"]).run().exits(0);
    world.ccm(["registration", "query", "--json"]).run().exits(0).says("[]");
}

/// Is not let in; the reason is told, and no secret.
#[track_caller]
fn is_refused(world: &World, server: &NatsServer, context: &Value, reason: &str) {
    server.context(world, "CCM", context);
    let outcome = world.ccm(["registration", "query"]).run();
    let outcome = outcome.exits(2).complains(reason);
    for secret in ["hunter2", "SUA", "-----BEGIN"] {
        outcome.never_says(secret);
    }
}

/// Starts a server with a configuration.
fn server(world: &World, config: &str) -> Option<NatsServer> {
    let path = world.base().join("server.conf");
    fs::write(&path, config).unwrap();
    NatsServer::with(world, &["-c", path.to_str().unwrap()])
}

const REFUSED: &str = "NATS refuses the login to nats://127.0.0.1";

#[test]
fn a_token_opens_the_door() {
    let world = World::new();
    let Some(server) = server(&world, "authorization: { token: right }\n") else { return };
    works(&world, &server, &json!({ "token": "right" }));
    is_refused(&world, &server, &json!({ "token": "hunter2" }), REFUSED);
    is_refused(&world, &server, &json!({}), REFUSED);
}

#[test]
fn an_nkey_opens_the_door_and_another_one_does_not() {
    let world = World::new();
    let (right, wrong) = (Nkey::new(USER, 7), Nkey::new(USER, 8));
    let config = format!("authorization: {{ users: [ {{ nkey: {} }} ] }}\n", right.public);
    let Some(server) = server(&world, &config) else { return };
    let world =
        world.beside("right.nk", &right.seed).beside("wrong.nk", &wrong.seed).beside("bad.nk", "SUA hunter2");
    let context = |name: &str| json!({ "nkey": world.base().join(name) });
    works(&world, &server, &context("right.nk"));
    is_refused(&world, &server, &context("wrong.nk"), REFUSED);
    is_refused(&world, &server, &context("bad.nk"), "bad.nk");
    is_refused(&world, &server, &context("missing.nk"), "missing.nk");
    // An agent says it, too, and goes on trying.
    server.context(&world, "CCM", &context("wrong.nk"));
    let world = world.beside("agent.yaml", "manifests: [obj://SITE/site.yaml]\n");
    let agent = Agent::start(&world);
    agent.says("authorization violation", 1);
    assert!(!agent.log().contains(&wrong.seed), "{}", agent.log());
}

#[test]
fn creds_open_the_door_where_an_operator_signed_for_them() {
    let world = World::new();
    let (operator, system) = (Nkey::new(OPERATOR, 1), Nkey::new(ACCOUNT, 2));
    let (account, user) = (Nkey::new(ACCOUNT, 3), Nkey::new(USER, 4));
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
        "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
    });
    let account_claims = json!({ "limits": limits, "type": "account", "version": 2 });
    let system_limits = json!({ "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1 });
    let system_claims = json!({ "limits": system_limits, "type": "account", "version": 2 });
    let user_claims =
        json!({ "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2 });
    let config = format!(
        "operator: \"{}\"\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{\n  {}: \"{}\"\n  {}: \"{}\"\n}}\n",
        operator.signs(&operator.public, &json!({ "type": "operator", "version": 2 })),
        system.public,
        system.public,
        operator.signs(&system.public, &system_claims),
        account.public,
        operator.signs(&account.public, &account_claims),
    );
    let Some(server) = server(&world, &config) else { return };
    let right = creds(&account.signs(&user.public, &user_claims), &user);
    // Signed by somebody whom the operator does not know, and with the key of somebody else.
    let stranger = creds(&Nkey::new(ACCOUNT, 9).signs(&user.public, &user_claims), &user);
    let stolen = creds(&account.signs(&user.public, &user_claims), &Nkey::new(USER, 5));
    let world = world
        .beside("right.creds", right)
        .beside("stranger.creds", stranger)
        .beside("stolen.creds", stolen)
        .beside("bad.creds", "hunter2");
    let context = |name: &str| json!({ "creds": world.base().join(name) });
    works(&world, &server, &context("right.creds"));
    is_refused(&world, &server, &context("stranger.creds"), REFUSED);
    is_refused(&world, &server, &context("stolen.creds"), REFUSED);
    is_refused(&world, &server, &context("bad.creds"), "bad.creds");
    is_refused(&world, &server, &context("missing.creds"), "missing.creds");
}

#[test]
fn servers_are_trusted_by_their_certificate_and_clients_by_theirs() {
    let world = World::new();
    let (own, client, other) =
        (Identity::of("127.0.0.1"), Identity::of("machine"), Identity::of("127.0.0.1"));
    let world = world
        .beside("server.pem", own.pem())
        .beside("server.key", own.key_pem())
        .beside("client.pem", client.pem())
        .beside("client.key", client.key_pem())
        .beside("other.pem", other.pem());
    let path = |name: &str| world.base().join(name).to_string_lossy().into_owned();
    for handshake in ["", "handshake_first: true"] {
        let config = format!(
            "tls: {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true, {handshake} }}\n",
            path("server.pem"),
            path("server.key"),
            path("client.pem"),
        );
        let Some(server) = server(&world, &config) else { return };
        let is_first = !handshake.is_empty();
        let right = json!({
            "ca": path("server.pem"), "cert": path("client.pem"), "key": path("client.key"), "tls_first": is_first,
        });
        works(&world, &server, &right);
        let but = |key: &str, value: Value| {
            let mut context = right.clone();
            context[key] = value;
            context
        };
        let refused = "NATS at nats://127.0.0.1";
        is_refused(&world, &server, &but("ca", json!(path("other.pem"))), refused);
        is_refused(&world, &server, &but("ca", json!("")), refused);
        is_refused(&world, &server, &but("ca", json!(path("missing.pem"))), "missing.pem");
        // Who shows no certificate of its own is not let in.
        let nameless = json!({ "ca": path("server.pem"), "tls_first": is_first });
        is_refused(&world, &server, &nameless, refused);
    }
}

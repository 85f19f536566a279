//! Command lines, requests and manifests of the Go original: each means what the page for those who come from there says.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use regex::Regex;
use serde_json::Value;

use crate::support::{
    Outcome, World, finish,
    http::{Reply, Server},
};

const SITE: &str = "- file:\n    - $W/site: { $OWN, mode: \"0644\", content: x }\n";
const DATA: &str = "data: { port: 80, web: { tls: true } }\n";

/// Runs a line of a shell in a folder of its own, and returns how it ended, without what differs from run to run.
fn run(line: &str) -> (Outcome, String) {
    let world = World::new().manifest(SITE).beside("data.yaml", DATA);
    let ccm = Path::new(env!("CARGO_BIN_EXE_ccm")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", line])
        .current_dir(world.base())
        .env_clear()
        .env("PATH", format!("{}:{path}", ccm.display()))
        .env("HOME", world.base().join("home"))
        .env("CCM_STATE_DIR", world.state())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let outcome = finish(shell.spawn().unwrap(), line.to_owned());
    let text =
        format!("{}\n{}\n{}\n{:?}", outcome.code, outcome.stdout, outcome.stderr, world.tree().names());
    let text = text.replace(&*world.base().to_string_lossy(), "BASE");
    let times = Regex::new(r"\d+(\.\d+)?(ns|us|µs|ms|s)\b").unwrap();
    let text = times.replace_all(&text, "TIME").into_owned();
    // The command line is shown with the words that it has.
    let text = text.lines().filter(|line| !line.contains("command line:1:")).collect::<Vec<_>>().join("\n");
    (outcome, text)
}

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/coming-from-go.md")).unwrap()
}

/// The rows of the table of words: a line of the original, and the same one here.
fn rows() -> Vec<(String, String)> {
    let page = page();
    let table = page.split("<!-- words:").nth(1).unwrap().split("<!-- end of words -->").next().unwrap();
    let cell = |text: &str| text.trim().trim_matches('`').to_owned();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        (cell(cells[0]), cell(cells[1]))
    })
    .collect()
}

/// The command lines in the last section of the page that can be run as they are, and what there is to see.
const REPAIRED: [(&str, i32, &str); 5] = [
    (r#"ccm ensure file $PWD/x --content "$(printf 'a\nb')"; cat x"#, 0, "created the file\na\nb"),
    (r#"ccm ensure exec 'printf "%s\n" "a b"' --logoutput"#, 0, "a b\n"),
    (r#"ccm ensure exec 'sh -c "sleep 60 & wait"' --timeout 1s"#, 1, "timed out"),
    ("ccm ensure exec 'true' --path /usr/bin:/bin", 0, "executed"),
    ("ccm ensure exec false; echo $?", 0, "\n1\n"),
];

#[test]
fn what_is_repaired_can_be_seen() {
    let page = page();
    let section = page.split("## What is repaired").nth(1).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_suffix("` |")?.rsplit_once("| `"));
    let lines: Vec<&str> = rows.map(|(_, line)| line).filter(|line| !line.contains("...")).collect();
    assert_eq!(lines, REPAIRED.map(|(line, ..)| line));
    for (line, code, seen) in REPAIRED {
        let (outcome, _) = run(line);
        outcome.exits(code).says(seen);
    }
}

#[test]
fn every_line_of_the_original_does_what_its_line_here_does() {
    let rows = rows();
    assert!(rows.len() > 20, "{}", rows.len());
    for (theirs, ours) in rows {
        let ((outcome, found), (_, expected)) = (run(&theirs), run(&ours));
        assert_ne!(outcome.code, 2, "{theirs}\n{outcome}");
        assert!(!found.contains("did you mean") && !found.contains("tip:"), "{theirs}\n{outcome}");
        assert_eq!(found, expected, "{theirs}\n{ours}");
    }
}

#[test]
fn no_word_of_the_original_gets_a_wrong_guess() {
    for (line, code, said) in [
        ("ccm apply site.yaml --if true", 2, "it belongs to `ccm ensure TYPE`"),
        ("ccm ensure file $PWD/a --disable", 2, "it belongs to `ccm ensure service`"),
        ("ccm svc x", 2, "it belongs to `ccm ensure`"),
        ("ccm ensure file $PWD/a -S exec#a", 2, "it belongs to `ccm ensure exec` and `ccm ensure service`"),
        ("ccm ensure service x started", 2, "write `running` here instead"),
        ("ccm ensure service x --enable --disable", 2, "--disable and --enable cannot be given together"),
        (
            "ccm ensure file $PWD/a --owner root:root --group root",
            2,
            "--owner USER:GROUP and --group cannot be given together",
        ),
        (
            "ccm ensure exec true --unless 'lookup(\"facts.os\") == \"linux\"'",
            2,
            "write --control 'unless=lookup(\"facts.os\") == \"linux\"', or --exec-unless",
        ),
        (
            "ccm ensure exec true --require file#/a",
            1,
            "there is no session in which file#/a could have been seen",
        ),
        ("ccm eval 'jet(\"a.jet\")'", 2, "there is no function `jet`"),
        ("ccm eval 'template(\"a.jet\")'", 2, "a.jet is a template in the language Jet"),
        ("ccm eval 'jinja(\"a.jet\")'", 2, "a.jet is a template in the language Jet"),
        ("ccm ensure archive $PWD/a.tar.gz latest", 2, "it is neither an address nor one of present, absent"),
    ] {
        let (outcome, text) = run(line);
        outcome.exits(code);
        assert!(text.contains(said), "{line}\n{outcome}");
        assert!(!text.contains("did you mean") && !text.contains("similar"), "{line}\n{outcome}");
    }
}

#[test]
fn words_of_the_original_are_not_offered_to_others() {
    for (line, said) in [
        ("ccm ensure", "[subcommands: archive, "),
        ("ccm ensure api pip", "a similar subcommand exists: 'pipe'"),
        ("ccm ensure service x --disable=true", "unexpected value 'true' for '--disable'"),
    ] {
        let (outcome, text) = run(line);
        outcome.exits(2);
        assert!(text.contains(said), "{line}\n{outcome}");
        assert!(
            !["svc", "pkg", "piped", "belongs"].iter().any(|word| text.contains(word)),
            "{line}\n{outcome}"
        );
    }
}

#[test]
fn what_names_jet_in_a_manifest_is_an_error_that_says_what_replaces_it() {
    for (manifest, said) in [
        ("- file: [{ $W/a: { $OWN, mode: '0644', content: \"{{ template('x.jet') }}\" } }]\n", "jinja(...)"),
        ("- file: [{ $W/a: { $OWN, mode: '0644', content: \"{{ jet('[[ x ]]') }}\" } }]\n", "jinja(...)"),
        ("ccm: { resources_jet_file: resources.jet }\n", "for_each"),
        ("- scaffold: [{ $W/a: { $OWN, source: tree, engine: jet } }]\n", "`engine: jinja` replaces it"),
        ("- scaffold: [{ $W/a: { $OWN, source: tree } }]\n", "jinja(...)"),
    ] {
        let world = World::new().beside("x.jet", "[[ data.x ]]").beside("tree/x.jet", "[[ data.x ]]");
        let world = world.manifest(manifest);
        for outcome in [world.validate(), world.apply()] {
            outcome.exits(2).complains("jet").complains(said);
        }
        assert!(world.tree().names().is_empty());
    }
    let world = World::new()
        .manifest("- file: [{ $W/a: { $OWN, mode: '0644', content: \"[[ data.x ]] {{ Facts.os }}\" } }]\n");
    world.validate().exits(0).complains("`[[ data.` belongs to Jet");
}

#[test]
fn a_number_that_is_compared_with_a_text_that_reads_the_same_is_a_warning() {
    for (expression, warns) in [
        ("Facts.tier == '1'", true),
        ("lookup('facts.tier') != '1'", true),
        ("Facts.tier in ['1', '2']", true),
        ("Facts.tier == 1", false),
        ("Facts.tier == 'web'", false),
        ("string(Facts.tier) == '1'", false),
        ("Facts.old == '007'", false),
    ] {
        let manifest = format!(
            "- file: [{{ $W/a: {{ $OWN, mode: '0644', content: x, control: {{ if: \"{expression}\" }} }} }}]\n"
        );
        let world = World::new().manifest(&manifest);
        let outcome = world.ccm(["validate", "site.yaml", "--fact", "tier=1", "--fact", "old=007"]).run();
        outcome.exits(0);
        let count = outcome.stderr.matches("the number 1 is compared with the text \"1\"").count();
        assert_eq!(count, usize::from(warns), "{expression}\n{outcome}");
        assert!(!warns || outcome.stderr.contains("site.yaml:1:"), "{outcome}");
    }
}

#[test]
fn digits_that_begin_with_a_zero_are_text() {
    let world = World::new().beside("data.yaml", "data: { who: \"{{ Facts.agent }}\" }\n");
    let eval = |expression: &str| {
        let words = ["eval", expression, "--fact", "agent=007", "--data", "agent=007", "--fact", "tier=1"];
        world.ccm(words).run()
    };
    for (expression, value) in [
        ("Facts.agent == '007'", Value::from(true)),
        ("Data.agent", "007".into()),
        ("lookup('facts.tier')", 1.into()),
    ] {
        let outcome = eval(expression);
        assert_eq!(outcome.exits(0).json(), value, "{expression}");
        assert_eq!(outcome.stderr, "", "{expression}");
    }
    let outcome = world.ccm(["hiera", "parse", "data.yaml", "agent=007", "--query", "who"]).run();
    assert_eq!(outcome.exits(0).json(), "007");
    let outcome = eval("Facts.tier == '1'");
    assert_eq!(outcome.exits(0).json(), false);
    outcome
        .complains("warning[mixed-comparison]: the number 1 is compared with the text \"1\": they are never the same\n")
        .complains(" --> expression:1:");
}

#[test]
fn what_exists_keeps_its_attributes_and_what_is_new_gets_the_users() {
    let world = World::new().file("old", "x").mode("old", 0o4750).dir("folder").mode("folder", 0o1700);
    for (name, state, mode) in [
        ("old", "present", 0o4750),
        ("new", "present", 0o644),
        ("folder", "directory", 0o1700),
        ("more", "directory", 0o755),
    ] {
        world.ccm(["ensure", "file", &format!("$W/{name}"), state]).run().exits(0);
        assert_eq!(world.tree().item(name).unwrap().mode, mode, "{name}");
    }
    world.ccm(["ensure", "file", "$W/old", "--content", "y"]).run().exits(0);
    assert_eq!((world.read("old").as_str(), world.tree().item("old").unwrap().mode), ("y", 0o4750));
    world.ccm(["ensure", "file", "$W/old", "--mode", "0600"]).run().exits(0);
    assert_eq!(world.tree().item("old").unwrap().mode, 0o600);
    let request = r#"{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"file","properties":{"name":"$W/new"}}"#;
    let answer = world.ccm(["ensure", "api", "pipe"]).input(world.fill(request)).run().exits(0).json();
    assert!(answer["error"].as_str().unwrap().contains("`owner` is missing"), "{answer:#}");
}

/// The answer to a request for a file.
fn answer(world: &World, content: &str, flags: &[&str]) -> (Value, Outcome) {
    let request = format!(
        r#"{{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"file","properties":{{"name":"$W/a","content":"{content}","owner":"$UID","group":"$GID","mode":"0644"}}}}"#
    );
    let outcome = world.ccm(["ensure", "api", "pipe"].iter().chain(flags)).input(world.fill(&request)).run();
    (outcome.exits(0).json(), outcome)
}

#[test]
fn templates_in_requests_are_text_unless_they_are_asked_for() {
    let world = World::new();
    let (found, outcome) = answer(&world, "{{ Facts.os }}", &[]);
    assert_eq!(world.read("a"), "{{ Facts.os }}");
    assert!(found["warnings"][0].as_str().unwrap().contains("--templates"), "{found:#}");
    outcome.complains("--templates");
    let (found, outcome) = answer(&world, "{{ Facts.os }}", &["--templates"]);
    assert_eq!(world.read("a"), "linux");
    assert!(found.get("warnings").is_none() && outcome.stderr.is_empty(), "{found:#}");
    let (found, _) = answer(&world, "{{ Facts.nope.x }}", &["--templates"]);
    assert!(found["error"].as_str().unwrap().contains("cannot read `x` of nil"), "{found:#}");
    let (found, outcome) = answer(&world, "plain", &[]);
    assert!(found.get("warnings").is_none() && outcome.stderr.is_empty(), "{found:#}");
}

#[test]
fn the_status_of_an_answer_tells_what_became_of_the_resource() {
    let world = World::new();
    let status = |flags: &[&str]| answer(&world, "x", flags).0["state"]["status"].clone();
    let noop = status(&["--noop"]);
    assert_eq!((&noop["changed"], &noop["noop"]), (&true.into(), &true.into()));
    assert_eq!(noop["noop_message"], "Would have created the file");
    let changed = status(&[]);
    assert_eq!((&changed["changed"], &changed["stable"]), (&true.into(), &false.into()));
    let stable = status(&[]);
    assert_eq!(
        (&stable["changed"], &stable["stable"], &stable["refreshed"]),
        (&false.into(), &true.into(), &false.into())
    );
    assert!(stable["timestamp"].is_string() && stable["metadata"]["size"] == 1, "{stable:#}");
}

#[test]
fn apply_reads_the_environment_of_the_folder_only_when_it_is_told_to() {
    let world = World::new()
        .beside(".env", "REGION=eu\n")
        .files("- $W/a: { content: \"{{ Environ.REGION ?? 'none' }}\" }\n");
    world.apply().exits(0).complains(".env is not read: --read-env");
    assert_eq!(world.read("a"), "none");
    let outcome = world.apply_with(&["--no-read-env"]);
    assert!(outcome.exits(0).stderr.is_empty(), "{outcome}");
    let outcome = world.apply_with(&["--read-env"]);
    assert!(outcome.exits(0).stderr.is_empty(), "{outcome}");
    assert_eq!(world.read("a"), "eu");
    let ensure = ["ensure", "file", "$W/b", "--content", "{{ Environ.REGION ?? 'none' }}"];
    world.ccm(ensure.iter().chain(&["--no-read-env"])).run().exits(0);
    assert_eq!(world.read("b"), "none");
    world.ccm(ensure).run().exits(0);
    assert_eq!(world.read("b"), "eu");
}

#[test]
fn hiera_takes_the_flags_and_variables_of_the_original() {
    let world = World::new()
        .beside(
            "data.yaml",
            "data: { port: 80, web: { tls: true }, who: \"{{ lookup('facts.NAME', 'none') }}\" }\n",
        )
        .beside("over.yaml", "port: 81\nweb: { tls: false }\n");
    let parse = |flags: &[&str]| {
        world.ccm(["hiera", "parse", "data.yaml"].iter().chain(flags)).env("NAME", "me").run()
    };
    assert_eq!(parse(&["--query", "port", "-D", "port=1"]).json(), 1);
    assert_eq!(parse(&["--query", "port", "--data-file", "over.yaml"]).json(), 81);
    assert_eq!(parse(&["--query", "who"]).json(), "none");
    assert_eq!(parse(&["--query", "who", "-E"]).json(), "me");
    assert_eq!(parse(&["--query", "who", "-E", "NAME=you"]).json(), "you");
    parse(&["--env", "--query", "web"])
        .exits(0)
        .says("HIERA_WEB='{\"tls\":true}'")
        .says("HIERA_WEB_TLS=true");
    let named = |words: &[&str]| {
        world.ccm(["hiera", "parse"].iter().chain(words)).env("HIERA_INPUT", "data.yaml").run()
    };
    assert_eq!(named(&["--query", "port"]).json(), 80);
    assert_eq!(named(&["NAME=you", "--query", "who"]).json(), "you");
}

#[test]
fn hints_show_what_to_write() {
    for (manifest, said) in [
        ("- exec: [{ 'true': { environment: { A: b } } }]\n", "write a list: `- A=value`"),
        (
            "- exec: [{ 'true': }]\n- exec: [{ 'true': }]\n",
            "give each a name of its own and the command as `command`",
        ),
        (
            "data: { a: \"{{ lookup('facts.nope') }}\" }\nccm: { resources: [] }\n",
            "give a default: `lookup('facts.nope', '')`",
        ),
        (
            "data:\n  # @validate isIP(value)\n  a: [10.0.0.1, 10.0.0.2]\nccm: { resources: [] }\n",
            "for each item of a list: `all(value, isIP(#))`",
        ),
    ] {
        World::new().manifest(manifest).validate().exits(2).complains(said);
    }
}

#[test]
fn credentials_and_headers_of_a_download_are_sent() {
    let server = Server::start(|_| Reply::status(404));
    let url = server.url("/a.tar.gz");
    let world = World::new();
    let line = ["ensure", "archive", "$W/a.tar.gz", url.as_str(), "-H", "X-Token: a=b: c", "--tries", "1"];
    let outcome = world.ccm(line).env("HTTP_USERNAME", "me").env("HTTP_PASSWORD", "c4n4ry").run();
    outcome.exits(1).never_says("c4n4ry").never_says("a=b");
    let asked = server.requests();
    assert_eq!(asked[0].header("authorization"), Some("Basic bWU6YzRuNHJ5"));
    assert_eq!(asked[0].header("x-token"), Some("a=b: c"));
}

#[test]
fn password_in_the_environment_without_a_user_is_not_sent() {
    let server = Server::start(|_| Reply::body(b"x".to_vec()));
    let url = server.url("/a.tar.gz");
    let world = World::new();
    let line = ["ensure", "archive", "$W/a.tar.gz", url.as_str(), "--checksum", "none"];
    let outcome = world.ccm(line).env("HTTP_PASSWORD", "c4n4ry").run();
    outcome.exits(0).never_says("c4n4ry").never_says("username");
    assert_eq!(server.requests()[0].header("authorization"), None);
}

/// Forms of arguments that the original accepts in addition to those in its help.
#[test]
fn arguments_of_the_original_are_accepted() {
    let ignored = "warning: -S is ignored: ccm always knows the facts of the machine";
    for (line, expected) in [
        ("ccm hiera facts tier=web --query tier", "\"web\""),
        ("ccm hiera facts tier:web tier", "\"web\""),
        ("TIER=web ccm hiera facts -E --query TIER", "\"web\""),
        ("ccm hiera facts 'none.#(a==\"b\")' 2>&1 || true", "none"),
        ("ccm hiera parse data.yaml role:web --query port", "80"),
        ("HIERA_INPUT=data.yaml ccm hiera parse role:web --query port", "80"),
        ("ccm hiera parse data.yaml -S --query port 2>&1", ignored),
        ("ccm facts -S host.info.os 2>&1", ignored),
        ("ccm facts --system-facts host.info.os 2>&1", ignored),
        ("ccm apply site.yaml -S --noop 2>&1", ignored),
        ("ccm ensure --fact tier:web file $PWD/a --content '{{ Facts.tier }}'; cat a", "web"),
        ("ccm ensure --no-read-env --context NONE file $PWD/a --content x; cat a", "x"),
        ("ccm ensure archive $PWD/a.tar.gz http://127.0.0.1:9/a.tar.gz -H X-Token=a --noop", "Would have"),
        (
            "ccm ensure archive $PWD/a.tar.gz http://127.0.0.1:9/a.tar.gz --headers X-Token:a --noop",
            "Would have",
        ),
    ] {
        let (outcome, _) = run(line);
        outcome.exits(0).says(expected);
    }
}

#[test]
fn providers_of_the_original_are_accepted() {
    let world = World::new()
        .manifest("- apply: [{ other.yaml: { provider: ccmmanifest } }]\n- scaffold: [{ $W/tree: { source: tree, engine: jinja, provider: choria, owner: root, group: root } }]\n")
        .beside("other.yaml", "- exec: [{ /bin/true: {} }]\n")
        .beside("tree/b", "y");
    world.ccm(["validate", "site.yaml"]).run().exits(0);
    let world = World::new().manifest("- package: [{ bash: { provider: choria } }]\n");
    world.ccm(["validate", "site.yaml"]).run().exits(2).complains("package has no provider \"choria\"");
}

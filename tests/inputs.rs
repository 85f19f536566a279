//! What the program is given to read: it never hangs on it, reads no more than it should, and lets data read nothing.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rustix::{
    fs::{CWD, FileType, RenameFlags, mknodat, renameat_with},
    process::{Pid, Signal, kill_process},
};

use crate::support::{
    World, finish,
    http::{Reply, Server},
    listens, wait_until,
};

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0).unwrap();
}

#[test]
fn data_and_hierarchies_read_no_files() {
    let secret = "the-secret-of-root";
    for function in ["file", "readFile", "template"] {
        for document in [
            "data: { a: \"${ CALL }\" }",
            "data: { a: 1 }\noverrides: { default: { a: \"x ${ CALL }\" } }",
            "data: { a: 1 }\noverrides: { other: { a: \"{{ CALL }}\" } }",
            "data: { a: 1 }\nhierarchy: { order: [\"h:${ CALL }\"] }",
        ] {
            let world = World::new().beside("secret", secret).manifest("[]");
            let path = world.base().join("secret");
            let document = document.replace("CALL", &format!("{function}('{}')", path.display()));
            let answer = document.clone();
            let server = Server::start(move |_| Reply::body(answer.clone().into_bytes()));
            let url = server.url("/data.yaml");
            let world = world
                .beside("data.yaml", &document)
                .beside("own.yaml", format!("{document}\nccm: {{ resources: [] }}"));
            for arguments in [
                &["apply", "own.yaml"][..],
                &["hiera", "parse", "data.yaml"],
                &["apply", "site.yaml", "--hiera", "data.yaml"],
                &["apply", "site.yaml", "--hiera", &url],
                &["ensure", "file", "$W/x", "--content", "${ Data.a }", "--hiera", &url],
            ] {
                let outcome = world.ccm(arguments).run();
                outcome
                    .exits(2)
                    .complains(&format!("`{function}` cannot be used in data: it reads files"))
                    .complains("use it in the properties of resources")
                    .never_says(secret);
            }
        }
    }
}

#[test]
fn rules_of_data_read_no_files_either() {
    let world = World::new().beside("secret", "x");
    let path = world.base().join("secret").display().to_string();
    let world = world.beside("data.yaml", format!("data:\n  # @validate file('{path}') == 'x'\n  a: 1\n"));
    let outcome = world.ccm(["hiera", "parse", "data.yaml"]).run();
    outcome.exits(2).complains("`file` cannot be used in data: it reads files");
}

#[test]
fn the_environment_is_seen_by_local_data_only() {
    for expression in ["Environ.TOKEN", "environ.TOKEN", "lookup('environ.TOKEN')", "lookup('env.TOKEN', '')"]
    {
        let document = format!("data: {{ a: \"${{ {expression} }}\" }}\n");
        let answer = document.clone();
        let server = Server::start(move |_| Reply::body(answer.clone().into_bytes()));
        let world = World::new().beside("data.yaml", &document).manifest("[]");
        let local = world.ccm(["hiera", "parse", "data.yaml"]).env("TOKEN", "abc").run();
        local.exits(0).says("\"a\": \"abc\"");
        let url = server.url("/data.yaml");
        let remote = world.ccm(["apply", "site.yaml", "--hiera", &url]).env("TOKEN", "abc").run();
        remote.exits(2).complains("is not available in data that comes from an address").never_says("abc");
    }
}

#[test]
fn a_named_pipe_is_refused_wherever_a_file_is_named() {
    let world = World::new().manifest("[]");
    fifo(&world.base().join("pipe"));
    fifo(&world.base().join("pipe.yaml"));
    for arguments in [
        &["apply", "pipe"][..],
        &["validate", "pipe.yaml"],
        &["apply", "site.yaml", "--facts", "pipe.yaml"],
        &["facts", "--facts", "pipe"],
        &["apply", "site.yaml", "--hiera", "pipe"],
        &["hiera", "parse", "pipe"],
        &["eval", "1", "--manifest", "pipe"],
        &["ensure", "file", "$W/x", "--content-file", "pipe"],
    ] {
        let outcome = world.ccm(arguments).run();
        outcome.exits(2).complains("it is a named pipe, not a regular file");
    }
    let archive = "- archive:\n    - $W/a.tar.gz: { url: 'https://127.0.0.1:1/a.tar.gz', $OWN, ca_file: $W/pipe, tries: 1 }\n";
    fifo(&world.path("pipe"));
    let world = world.manifest(archive);
    world.apply().exits(1).says("it is a named pipe, not a regular file");
}

#[test]
fn devices_sockets_and_folders_are_refused() {
    let world = World::new().manifest("[]");
    let _socket = std::os::unix::net::UnixListener::bind(world.base().join("socket")).unwrap();
    for (path, what) in [
        ("/dev/zero", "it is a device, not a regular file"),
        ("socket", "it is a socket or a device, not a regular file"),
        ("w", "it is a directory, not a regular file"),
    ] {
        world.ccm(["facts", "--facts", path]).run().exits(2).complains(what);
    }
}

#[test]
fn a_pipe_exchanged_for_the_file_that_a_template_reads_never_blocks() {
    let world = World::new().file("text", "ours").manifest(
        "\
- exec:
    - /bin/true: {}
- file:
    - $W/out: { content: \"{{ file('$W/text') }}\", $OWN, mode: '0644' }
",
    );
    fifo(&world.path("pipe"));
    let stop = Arc::new(AtomicBool::new(false));
    let attacker = {
        let (stop, one, other) = (Arc::clone(&stop), world.path("text"), world.path("pipe"));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
            }
        })
    };
    let (mut refused, mut written) = (0, 0);
    wait_until("a run comes when the file is there, and one when the pipe is", || {
        let outcome = world.apply();
        match outcome.code {
            0 => written += 1,
            1 => {
                outcome.says("cannot read");
                refused += 1;
            }
            _ => panic!("{outcome}"),
        }
        refused > 5 && written > 5
    });
    stop.store(true, Ordering::Relaxed);
    attacker.join().unwrap();
    assert_eq!(world.read("out"), "ours");
}

#[test]
fn pipes_that_are_handed_over_are_read() {
    let world = World::new();
    let manifest = world.fill("- file:\n    - $W/x: { content: \"${ Facts.word }\", $OWN, mode: '0644' }\n");
    for path in ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev/fd/3", "/proc/self/fd/3"] {
        let call = world.ccm(["apply", path, "--fact", "word=one"]).input(&manifest);
        call.under(["sh", "-c", "exec \"$0\" \"$@\" 3<&0"]).run().exits(0);
        assert_eq!(world.read("x"), "one", "{path}");
        fs::remove_file(world.path("x")).unwrap();
    }
    let world = world.manifest(&manifest);
    let call = world.ccm(["apply", "site.yaml", "--facts", "/dev/fd/3"]).input("word: two\n");
    call.under(["sh", "-c", "exec \"$0\" \"$@\" 3<&0"]).run().exits(0);
    assert_eq!(world.read("x"), "two");
    let call = world
        .ccm([
            "ensure",
            "file",
            "$W/y",
            "--content-file",
            "/dev/stdin",
            "--owner",
            "$UID",
            "--group",
            "$GID",
            "--mode",
            "644",
        ])
        .input("three");
    call.run().exits(0);
    assert_eq!(world.read("y"), "three");
}

#[test]
fn reading_a_pipe_that_never_ends_stops_at_a_signal() {
    let world = World::new().manifest("[]");
    fifo(&world.base().join("pipe"));
    for arguments in [&["apply", "/dev/fd/3"][..], &["facts", "--facts", "/dev/fd/3"]] {
        let call = world.ccm(arguments).under(["sh", "-c", "exec 3<>pipe; exec \"$0\" \"$@\""]);
        let child = call.start();
        let id = Pid::from_child(&child);
        listens(&child, Signal::TERM);
        kill_process(id, Signal::TERM).unwrap();
        finish(child, arguments.join(" ")).exits(2).complains("stopped by SIGTERM");
    }
}

#[test]
fn documents_larger_than_allowed_are_refused() {
    let padding = format!("# {}\n", "x".repeat(2000));
    let world = World::new()
        .beside("site.yaml", format!("[]\n{padding}"))
        .beside("facts.yaml", format!("a: 1\n{padding}"))
        .beside("data.yaml", format!("data: {{ a: 1 }}\n{padding}"))
        .beside("small.yaml", "[]");
    for arguments in [
        &["apply", "site.yaml"][..],
        &["apply", "small.yaml", "--facts", "facts.yaml"],
        &["apply", "small.yaml", "--hiera", "data.yaml"],
        &["hiera", "parse", "data.yaml"],
        &["facts", "a", "--facts", "facts.yaml"],
    ] {
        world.ccm(arguments).run().exits(0);
        let limited = world.ccm(arguments.iter().chain(&["--max-input-size", "1KiB"])).run();
        limited.exits(2).complains("it is larger than 1024 bytes; --max-input-size");
        let limited = world.ccm(arguments).env("CCM_MAX_INPUT_SIZE", "1000").run();
        limited.exits(2).complains("it is larger than 1000 bytes");
    }
    world
        .ccm(["apply", "-"])
        .input(vec![b' '; 65 << 20])
        .run()
        .exits(2)
        .complains("larger than 67108864 bytes");
    world.ccm(["apply", "small.yaml", "--max-input-size", "much"]).run().exits(2).complains("is not a size");
}

#[test]
fn a_manifest_that_declares_nothing_is_a_mistake() {
    for document in [
        "",
        "---\n",
        "# only this\n",
        "{}",
        "data: { a: 1 }\n",
        "ccm: {}\n",
        "ccm:\n",
        "ccm: { fail_on_error: true }\n",
        "ccm: { resources: }\n",
    ] {
        let world = World::new().manifest(document);
        for outcome in [world.apply(), world.validate(), world.ccm(["apply", "-"]).input(document).run()] {
            outcome.exits(2).complains("resources");
        }
    }
    for document in ["[]", "ccm: { resources: [] }\n", "data: { a: 1 }\nccm:\n  resources: []\n"] {
        let world = World::new().manifest(document);
        world.apply().exits(0);
        world.validate().exits(0);
    }
    let closed = World::new().ccm(["apply", "-"]).under(["sh", "-c", "exec \"$0\" \"$@\" <&-"]).run();
    closed.exits(2).complains("the manifest has no resources");
}

#[test]
fn an_address_that_answers_without_data_is_an_error() {
    for body in ["", "\n", "# nothing\n", "---\n"] {
        let server = Server::start(move |_| Reply::body(body.as_bytes().to_vec()));
        let world = World::new().manifest("[]");
        let outcome = world.apply_with(&["--hiera", &server.url("/data.yaml")]);
        outcome.exits(2).complains("the address answers without any data");
    }
}

#[test]
fn a_request_without_an_end_is_answered_with_an_error() {
    let world = World::new();
    let mut input = vec![b'x'; 70 << 20];
    input.extend_from_slice(b"\n{\"type\": \"file\"}\n");
    let outcome = world.ccm(["ensure", "api", "serve"]).input(input).run();
    let answers = outcome.exits(0).json_lines();
    assert_eq!(answers.len(), 2, "{outcome}");
    assert_eq!(answers[0]["error"], "a request may not be longer than 67108864 bytes");
    assert!(answers[1]["error"].as_str().unwrap().contains("protocol"), "{outcome}");
}

#[test]
fn all_expressions_of_a_run_share_one_memory() {
    // Each text alone is well within what one expression may make.
    let nested =
        "[1, 2, 3, 4, 5, 6, 7, 8] | map(template(\"{{ repeat('x', 30000000) }}\" + string(#))) | len()";
    let world = World::new();
    let outcome = world.ccm(["eval", nested]).env("CCM_MEMORY_LIMIT", "128MiB").run();
    outcome.exits(2).complains("expressions hold more than 134217728 bytes together");
    world.ccm(["eval", nested]).run().exits(0).says("8");
    let keys: String = (0..200).map(|key| format!("  k{key}: \"${{ repeat('x', 30000000) }}\"\n")).collect();
    let world = World::new().manifest(&format!("data:\n{keys}ccm: {{ resources: [] }}\n"));
    let outcome = world.apply();
    outcome
        .exits(2)
        .complains("expressions hold more than 536870912 bytes together")
        .complains("CCM_MEMORY_LIMIT");
    outcome.complains("1 error in site.yaml");
    world
        .ccm(["apply", "site.yaml"])
        .env("CCM_MEMORY_LIMIT", "much")
        .run()
        .exits(2)
        .complains("CCM_MEMORY_LIMIT: ");
}

#[test]
fn what_a_turn_made_is_free_again_after_it() {
    let items: String = (0..40)
        .map(|file| {
            format!("    - $W/{file}: {{ content: \"${{ repeat('x', 500000) }}\", $OWN, mode: '0644' }}\n")
        })
        .collect();
    let world = World::new().manifest(&format!("- file:\n{items}"));
    world.ccm(["apply", "site.yaml"]).env("CCM_MEMORY_LIMIT", "4MiB").run().exits(0);
}

//! Services in the lab where systemd is asked over the bus: the same is learned as from `systemctl`, and `systemctl` is
//! called wherever it is another one, or the bus is of no use.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixListener},
    thread,
};

use serde_json::Value;

use crate::{lab::Site, support::Outcome};

const SLEEP: &str = "ExecStart=/bin/sleep infinity";

/// A program that is not `systemctl`, in its place, before another one is started: whoever calls it fails.
const USELESS: &str = "mount --bind /bin/false /usr/bin/systemctl";

/// Runs the program with the system's own `systemctl`, after a script in a mount namespace of its own.
fn after(site: &Site, script: &str, arguments: &[&str]) -> Outcome {
    let words = ["unshare", "--mount", "/bin/sh", "-ec", &format!("{script}\nexec ccm \"$@\""), "sh"];
    let output = site
        .lab
        .command(&[&words, arguments].concat())
        .env("CCM_STATE_DIR", format!("/srv/{}/state", site.name()))
        .env("PATH", "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin")
        .output()
        .expect("the program starts");
    Outcome::new(format!("{script}; ccm {}", arguments.join(" ")), output)
}

/// What is to be learned of an event: not when it was, nor how long it took.
fn learned(run: &Outcome) -> Vec<Value> {
    let mut events = run.events();
    for event in &mut events {
        let event = event.as_object_mut().unwrap();
        event.retain(|key, _| {
            !matches!(key.as_str(), "event_id" | "timestamp" | "duration" | "start_time" | "end_time")
        });
    }
    events
}

/// Units in every state that there is.
fn zoo(site: &Site) -> Vec<&'static str> {
    for name in ["zoo-runs", "zoo-stopped", "zoo-enabled", "zoo-stale", "zoo-at@"] {
        site.unit(name, SLEEP);
    }
    // A unit in `/etc` cannot be masked.
    for name in ["zoo-masked", "zoo-masked-now"] {
        site.write(
            &format!("/usr/local/lib/systemd/system/{name}.service"),
            &format!("[Service]\n{SLEEP}\n"),
        );
    }
    site.unit("zoo-failed", "ExecStart=/bin/false");
    site.unit("zoo-done", "Type=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true");
    site.unit("zoo-restarts", "Restart=always\nRestartSec=1h\nExecStart=/bin/false");
    site.write("/etc/systemd/system/zoo-static.service", &format!("[Service]\n{SLEEP}\n"));
    site.write("/etc/systemd/system/zoo-broken.service", "no unit\n[Service\nExecStart=");
    site.write(
        "/etc/systemd/system/zoo-real.service",
        &format!("[Service]\n{SLEEP}\n[Install]\nWantedBy=multi-user.target\nAlias=zoo-alias.service\n"),
    );
    site.write(
        "/srv/zoo/zoo-linked.service",
        &format!("[Service]\n{SLEEP}\n[Install]\nWantedBy=multi-user.target\n"),
    );
    site.write("/etc/systemd/system/zoo+odd.timer", "[Timer]\nOnCalendar=2099-01-01\n");
    site.write(
        "/etc/systemd/system/zoo\\x2bodd.timer",
        "[Timer]\nOnCalendar=2099-01-01\n[Install]\nWantedBy=timers.target\n",
    );
    site.lab.sh("systemctl daemon-reload
         systemctl --quiet enable zoo-enabled zoo-real
         systemctl --quiet enable --runtime zoo-stale
         systemctl --quiet link /srv/zoo/zoo-linked.service
         systemctl start zoo-runs zoo-done zoo-at@one zoo-stale
         systemctl start zoo-failed zoo-restarts || true
         systemctl --quiet mask zoo-masked; systemctl --quiet mask --runtime zoo-masked-now
         systemd-run --quiet --unit=zoo-transient sleep infinity");
    site.unit("zoo-stale", &format!("{SLEEP}\nNice=1"));
    site.lab.wait_until("[ $(systemctl is-active zoo-failed) = failed ]");
    site.lab.wait_until("[ $(systemctl is-active zoo-restarts) = activating ]");
    vec![
        "zoo-runs",
        "zoo-stopped",
        "zoo-enabled",
        "zoo-masked",
        "zoo-masked-now",
        "zoo-stale",
        "zoo-failed",
        "zoo-done",
        "zoo-restarts",
        "zoo-static",
        "zoo-broken",
        "zoo-real",
        "zoo-alias",
        "zoo-linked",
        "zoo+odd.timer",
        "zoo-missing",
        "zoo-transient",
    ]
}

fn put_away(site: &Site) {
    site.lab.sh(
        "systemctl --quiet unmask zoo-masked zoo-masked-now; systemctl unmask --quiet --runtime zoo-masked-now
         systemctl --quiet disable zoo-enabled zoo-real zoo-linked 2>/dev/null || true
         systemctl stop 'zoo-*'; rm -f /etc/systemd/system/zoo* /run/systemd/system/zoo* /usr/local/lib/systemd/system/zoo*
         systemctl daemon-reload; systemctl reset-failed",
    );
}

#[test]
fn what_systemd_says_over_the_bus_is_what_systemctl_says() {
    let Some(site) = Site::alone("zoo") else { return };
    let mut names = zoo(&site);
    names.push("zoo-at@one");
    for name in &names {
        let unit = ["--unit", name];
        let words: &[&str] =
            if name.contains('@') { &["status", "service", "zoo-at"] } else { &["status", "service", name] };
        let words = [words, if name.contains('@') { &unit[..] } else { &[] }, &["--json"]].concat();
        let (called, asked) = (site.ccm(&words), after(&site, ":", &words));
        assert_eq!(
            (called.code, &called.stdout, &called.stderr),
            (asked.code, &asked.stdout, &asked.stderr),
            "{name}"
        );
    }
    // All at once, wanted one way and the other.
    for wanted in ["ensure: running, enable: true", "ensure: stopped, enable: false"] {
        let items: String = names
            .iter()
            .map(|name| match name.split_once('@') {
                Some((template, _)) => format!("    - {template}: {{ unit: '{name}', {wanted} }}\n"),
                None => format!("    - '{name}': {{ {wanted} }}\n"),
            })
            .collect();
        site.write("/srv/zoo/site.yaml", &format!("- service:\n{items}"));
        let words = ["apply", "/srv/zoo/site.yaml", "--noop", "--json"];
        let (called, asked) = (site.ccm(&words), after(&site, ":", &words));
        assert_eq!((called.code, learned(&called)), (asked.code, learned(&asked)), "{called}{asked}");
        assert_eq!(learned(&called).len(), names.len());
    }
    put_away(&site);
}

/// Units that run, and a manifest in which they shall.
fn crowd<'a>(site: &Site, name: &str) -> [&'a str; 3] {
    for number in 1..=3 {
        site.unit(&format!("{name}-{number}"), SLEEP);
    }
    site.lab
        .sh(&format!("systemctl daemon-reload; systemctl --quiet enable --now {name}-1 {name}-2 {name}-3"));
    let file = format!("/srv/{name}/site.yaml");
    site.write(&file, &format!("- service:\n    - defaults: {{ enable: true }}\n    - {name}-1:\n    - {name}-2:\n    - {name}-3:\n"));
    ["apply", Box::leak(file.into_boxed_str()), "-v"]
}

#[test]
fn only_the_systems_own_systemctl_is_passed_over() {
    let Some(site) = Site::alone("passed-over") else { return };
    let words = crowd(&site, "passed-over");
    after(&site, USELESS, &words).exits(0).counts([0, 3, 0, 0]);
    // One that comes first in the search path.
    site.ccm(&words).exits(0).counts([0, 3, 0, 0]);
    assert_eq!((site.count("show"), site.count("is-enabled")), (1, 1), "{:#?}", site.calls());
    // One that is put in its place.
    let _ = fs::remove_file(site.lab.path("/srv/passed-over/calls"));
    let in_its_place = "cp /usr/bin/systemctl /srv/passed-over/real
        sed 's|/usr/bin/systemctl|/srv/passed-over/real|' /srv/passed-over/bin/systemctl >/srv/passed-over/other
        chmod 755 /srv/passed-over/other; mount --bind /srv/passed-over/other /usr/bin/systemctl";
    after(&site, in_its_place, &words).exits(0).counts([0, 3, 0, 0]);
    assert_eq!((site.count("show"), site.count("is-enabled")), (1, 1), "{:#?}", site.calls());
    // In a chroot and where the environment says so, `systemctl` looks at files itself.
    let chroot = format!(
        "{USELESS}; mkdir -p /srv/passed-over/root; mount -t tmpfs none /srv/passed-over/root; cd /srv/passed-over/root
         for folder in usr etc run proc srv tmp; do mkdir $folder; mount --rbind /$folder $folder; done
         for link in bin lib lib64 sbin; do ln -s usr/$link $link; done
         exec chroot . ccm \"$@\""
    );
    for elsewhere in [&chroot, &format!("{USELESS}; export SYSTEMD_OFFLINE=1")] {
        after(&site, elsewhere, &words).exits(1).counts([0, 0, 3, 0]);
    }
    // What has to be done is done by `systemctl`.
    site.lab.sh("systemctl stop passed-over-2; systemctl --quiet disable passed-over-3");
    after(&site, ":", &words).exits(0).counts([2, 1, 0, 0]);
    assert_eq!(
        (site.active("passed-over-2"), site.enabled("passed-over-3")),
        ("active".into(), "enabled".into())
    );
    site.lab.sh("systemctl --quiet disable --now passed-over-1 passed-over-2 passed-over-3");
}

#[test]
fn where_the_bus_is_of_no_use_systemctl_is_called() {
    let Some(site) = Site::alone("no-bus") else { return };
    let words = crowd(&site, "no-bus");
    let without = "mount -t tmpfs none /run/dbus";
    after(&site, without, &words).exits(0).counts([0, 3, 0, 0]);
    // Without both there is nobody to ask.
    after(&site, &format!("{without}; {USELESS}"), &words).exits(1);
    let nothing: &[u8] = b"";
    for (name, first, then) in [
        ("refuses", &b"REJECTED EXTERNAL\r\n"[..], nothing),
        ("leaves", b"OK 1234\r\n", nothing),
        ("babbles", b"OK 1234\r\n", &[0x6c; 4096]),
        ("mumbles", b"OK 1234\r\n", &[0; 64]),
    ] {
        let folder = format!("/srv/no-bus/{name}");
        fs::create_dir_all(site.lab.path(&folder)).unwrap();
        let socket = site.lab.path(&format!("{folder}/system_bus_socket"));
        let listener = UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
        let bus = thread::spawn(move || {
            let (mut caller, _) = listener.accept().unwrap();
            let _ = caller.read(&mut [0; 256]);
            let _ = caller.write_all(first);
            let _ = caller.read(&mut [0; 4096]);
            let _ = caller.write_all(then);
        });
        after(&site, &format!("mount --bind {folder} /run/dbus"), &words).exits(0).counts([0, 3, 0, 0]);
        bus.join().unwrap();
    }
    // One that never answers is not waited for without end.
    fs::create_dir_all(site.lab.path("/srv/no-bus/silent")).unwrap();
    let silent = UnixListener::bind(site.lab.path("/srv/no-bus/silent/system_bus_socket")).unwrap();
    after(&site, "mount --bind /srv/no-bus/silent /run/dbus", &words).exits(0).counts([0, 3, 0, 0]);
    drop(silent);
    site.lab.sh("systemctl --quiet disable --now no-bus-1 no-bus-2 no-bus-3");
}

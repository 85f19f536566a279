//! The same deployment three ways, in the lab: as a manifest, as a shell script and from Python.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use sha2::{Digest, Sha256};

use crate::{
    lab::Site,
    support::{has, http::Server, sh},
};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/deploy");

/// What a deployment leaves: files with their owners and modes, and what systemd says of the service.
const END_STATE: &str = "for path in /opt/dl /opt/dl/app.tar.gz /opt/app /opt/app/bin/app /etc/app.conf \
     /etc/systemd/system/app.service; do stat -c '%n %F %U:%G %a' $path; [ -d $path ] || sha256sum <$path; done; \
     systemctl is-active app; systemctl is-enabled app";
const CLEAN_UP: &str = "systemctl disable --now app; rm -rf /opt/dl /opt/app /etc/app.conf \
     /etc/systemd/system/app.service /var/lib/ccm; systemctl daemon-reload";

#[test]
fn a_manifest_a_script_and_a_program_deploy_the_same() {
    let Some(site) = Site::alone("deploy") else { return };
    if !has("python3") {
        return;
    }
    let release = release();
    let sum: String = Sha256::digest(&release).iter().map(|byte| format!("{byte:02x}")).collect();
    let server = Server::of(release);
    let url = server.url("/app.tar.gz");
    for file in fs::read_dir(EXAMPLE).unwrap().flatten() {
        let text = fs::read_to_string(file.path()).unwrap();
        site.write(&format!("/srv/deploy/example/{}", file.file_name().display()), &text);
    }
    let manifest = || {
        let (url, sum) = (format!("url={url}"), format!("sum={sum}"));
        let words = ["ccm", "apply", "/srv/deploy/example", "--data", &url, "--data", &sum];
        run(site.lab.command(&words))
    };
    let script = || run(site.lab.command(&["sh", "/srv/deploy/example/deploy.sh", &url, &sum]));
    let program = || run(python(&site, &[&url, &sum]));
    let ways: [(&str, &dyn Fn() -> String, &str); 3] = [
        ("manifest", &manifest, ": 5 unchanged"),
        ("script", &script, ": 5 unchanged"),
        ("program", &program, "stable service#app"),
    ];
    let mut states = Vec::new();
    for (way, deploy, all_stable) in ways {
        deploy();
        states.push((way, site.lab.sh(END_STATE)));
        let asked = server.requests().len();
        let again = deploy();
        assert!(again.contains(all_stable), "{way}: {again}");
        assert!(!again.contains("changed file#"), "{way}: {again}");
        assert_eq!(server.requests().len(), asked, "{way}: a stable archive needs no network");
        site.lab.sh(CLEAN_UP);
    }
    assert_eq!(states[0].1, states[1].1);
    assert_eq!(states[0].1, states[2].1);
    assert!(states[0].1.ends_with("active\nenabled\n"), "{}", states[0].1);
}

/// A release with one small program in it.
fn release() -> Vec<u8> {
    let folder = std::env::temp_dir().join(format!("ccm-release-{}", std::process::id()));
    fs::create_dir_all(folder.join("bin")).unwrap();
    fs::write(folder.join("bin/app"), "#!/bin/sh\nexec sleep 1000000\n").unwrap();
    fs::set_permissions(folder.join("bin/app"), fs::Permissions::from_mode(0o755)).unwrap();
    sh("tar -czf app.tar.gz bin", &folder);
    let release = fs::read(folder.join("app.tar.gz")).unwrap();
    fs::remove_dir_all(folder).unwrap();
    release
}

/// The Python program on this machine, with the `ccm` of the lab as its own.
fn python(site: &Site, arguments: &[&str]) -> Command {
    let inside = site.lab.command(&["ccm"]);
    let words: Vec<_> = [inside.get_program()].into_iter().chain(inside.get_args()).collect();
    let words: Vec<_> = words.iter().map(|word| format!("'{}'", word.display())).collect();
    let folder = site.lab.path("/srv/deploy/host-bin");
    fs::create_dir_all(&folder).unwrap();
    let wrapper = folder.join("ccm");
    fs::write(&wrapper, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "))).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("python3");
    command.arg(Path::new(EXAMPLE).join("deploy.py")).args(arguments);
    command.env("PATH", format!("{}:{path}", folder.display()));
    command
}

/// What a command printed; it must go well.
#[track_caller]
fn run(mut command: Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}\n{text}");
    text
}

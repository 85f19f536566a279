//! The roles in `examples/roles`, on a machine with a real systemd and the packages of Debian.

use std::{fs, path::Path};

use crate::{lab::Site, support::skip};

/// Lets the machine install packages without starting what is in them: it shares the network of this one.
fn site(name: &str) -> Option<Site> {
    let site = Site::with_packages(name)?;
    site.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n");
    site.lab.sh("chmod 755 /usr/sbin/policy-rc.d");
    let updated =
        site.lab.command(&["apt-get", "update", "-qq", "-o", "APT::Update::Error-Mode=any"]).output();
    if !updated.expect("apt-get").status.success() {
        skip("needs the packages of Debian");
        return None;
    }
    Some(site)
}

/// Copies a role to the machine, with all of its files.
fn copy(site: &Site, from: &Path, to: &str) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = format!("{to}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            copy(site, &entry.path(), &to);
        } else {
            site.write(&to, &fs::read_to_string(entry.path()).unwrap());
        }
    }
}

/// Applies a role as a dry run, then in earnest, and then once more, which changes nothing.
fn converges(site: &Site, role: &str, data: &[String]) {
    let folder = format!("/srv/role-{role}");
    copy(site, &Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/roles").join(role), &folder);
    let data: Vec<&str> = data.iter().flat_map(|data| ["--data", data]).collect();
    let apply = |flags: &[&str]| site.ccm(&[&["apply", &folder], &data[..], flags].concat());
    site.ccm(&[&["validate", &folder], &data[..]].concat()).exits(0);
    apply(&["--noop"]).exits(0);
    apply(&["-v"]).exits(0);
    apply(&["-v", "--detailed-exitcode"]).exits(0).never_says(" changed");
    apply(&["--noop", "--detailed-exitcode"]).exits(0);
}

/// A port that no other run of the tests is likely to use.
fn port(offset: u32) -> u32 {
    20_000 + std::process::id() % 10_000 * 4 + offset
}

#[test]
fn the_nginx_role_serves_its_sites() {
    let Some(site) = site("role-nginx") else { return };
    let (first, second) = (port(0), port(1));
    let sites = format!(
        "sites=[{{name: a.test, listen: '127.0.0.1:', port: {first}}}, \
         {{name: b.test, listen: '127.0.0.1:', port: {second}, root: /srv/b, proxy: {{/api/: 'http://127.0.0.1:9'}}}}]"
    );
    site.write("/etc/nginx/conf.d/litter.conf", "broken");
    converges(&site, "nginx", &[sites]);
    assert_eq!((site.active("nginx"), site.enabled("nginx")), ("active".to_owned(), "enabled".to_owned()));
    site.write("/srv/b/index.html", "the second site");
    let ask = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{second}; printf 'GET / HTTP/1.0\\r\\nHost: b.test\\r\\n\\r\\n' >&3; cat <&3"
    );
    let answer = site.lab.command(&["/bin/bash", "-c", &ask]).output().expect("bash");
    assert!(String::from_utf8_lossy(&answer.stdout).contains("the second site"), "{answer:?}");
    site.lab.sh("systemctl stop nginx");
}

#[test]
fn the_ntp_role_asks_its_servers() {
    let Some(site) = site("role-ntp") else { return };
    // The clock of a container is not its own.
    let data = ["service=stopped", "servers=[ntp.test]", "allow=[10.0.0.0/8]"].map(str::to_owned);
    converges(&site, "ntp", &data);
    assert_eq!(site.enabled("chrony"), "enabled");
    let settings = site.lab.sh("cat /etc/chrony/sources.d/ccm.sources /etc/chrony/conf.d/*.conf; chronyd -p");
    for line in ["server ntp.test iburst", "allow 10.0.0.0/8", "makestep 1.0 3"] {
        assert!(settings.lines().any(|found| found == line), "{line}: {settings}");
    }
    assert!(!settings.contains("pool 2.debian.pool.ntp.org"), "{settings}");
}

#[test]
fn the_ssh_role_takes_keys_and_nothing_else() {
    let Some(site) = site("role-ssh") else { return };
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGVuZ2luZWVyLW9uLWNjbS1rZXktZm9yLXRlc3Rz somebody";
    let data = [
        format!("settings.Port={}", port(2)),
        "settings.ListenAddress=127.0.0.1".to_owned(),
        format!("users={{deploy: ['{key}']}}"),
    ];
    converges(&site, "ssh", &data);
    assert_eq!((site.active("ssh"), site.enabled("ssh")), ("active".to_owned(), "enabled".to_owned()));
    let settings = site.lab.sh("/usr/sbin/sshd -T");
    for line in ["permitrootlogin no", "passwordauthentication no", "allowgroups ssh-users", "maxauthtries 3"]
    {
        assert!(settings.lines().any(|found| found == line), "{line}: {settings}");
    }
    assert_eq!(site.lab.sh("cat /home/deploy/.ssh/authorized_keys"), format!("{key}\n"));
    assert!(!site.lab.path("/etc/ssh/ssh_host_ecdsa_key").exists());
    site.lab.sh("systemctl stop ssh");
}

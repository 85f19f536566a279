//! A real server, deployed with `validate` and `health_checks`, in the lab.

use crate::{
    lab::Site,
    support::{Outcome, skip},
};

/// Nobody else listens here.
const PORT: u16 = 18917;

const INSTALL: &str =
    "printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d; chmod 0755 /usr/sbin/policy-rc.d
apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends nginx-light
rm -f /etc/nginx/sites-enabled/default";

fn deploy(site: &Site, server: &str) -> Outcome {
    site.apply(&format!(
        "
- file:
    - /etc/nginx/conf.d/app.conf:
        content: |
          {server}
        owner: root
        group: root
        mode: '0644'
        validate: nginx -t
- service:
    - nginx:
        restart: reload
        subscribe: ['file#/etc/nginx/conf.d/app.conf']
        health_checks:
          - http: {{ url: 'http://127.0.0.1:{PORT}/health', contains: well }}
            tries: 3
            try_sleep: 200ms
          - unit: nginx
- exec:
    - announce:
        command: sh -c 'echo x >>/srv/nginx/announced'
        refresh_only: true
        subscribe: ['service#nginx']
"
    ))
}

fn announced(site: &Site) -> usize {
    site.lab.sh("cat /srv/nginx/announced 2>/dev/null || true").lines().count()
}

fn server(answer: &str) -> String {
    format!("server {{ listen 127.0.0.1:{PORT}; location / {{ {answer}; }} }}")
}

#[test]
fn a_configuration_that_breaks_the_server_never_arrives_and_one_that_does_not_answer_is_noticed() {
    let Some(site) = Site::with_packages("nginx") else { return };
    let installed = site.lab.command(&["/bin/sh", "-ec", INSTALL]).output().unwrap();
    if !installed.status.success() {
        skip("nginx cannot be installed in the lab");
        return;
    }
    let configuration =
        || site.lab.sh("cat /etc/nginx/conf.d/app.conf; stat -c %i /etc/nginx/conf.d/app.conf");
    deploy(&site, &server("return 200 \"well\\n\"")).exits(0).says("http 127.0.0.1");
    assert_eq!((site.active("nginx").as_str(), announced(&site)), ("active", 1));
    let good = configuration();
    // What nginx refuses does not come near the disk.
    let broken = deploy(&site, "server { listen nowhere:; }");
    broken.exits(1).says("the new content is not valid: `nginx -t`").says("/etc/nginx/conf.d/app.conf");
    assert_eq!(configuration(), good);
    assert_eq!(announced(&site), 1);
    // What nginx accepts and nobody gets an answer from fails the service, and those who follow it wait.
    deploy(&site, &server("return 503")).exits(1).says("CRITICAL").reports("service#nginx", "failed");
    assert_ne!(configuration(), good);
    assert_eq!(announced(&site), 1);
    deploy(&site, &server("return 503")).exits(1);
    assert_eq!(announced(&site), 1);
    deploy(&site, &server("return 200 \"all well\\n\"")).exits(0);
    assert_eq!(announced(&site), 2);
    deploy(&site, &server("return 200 \"all well\\n\"")).exits(0);
    assert_eq!(announced(&site), 2);
    site.lab.sh("systemctl stop nginx; systemctl disable nginx 2>/dev/null");
}

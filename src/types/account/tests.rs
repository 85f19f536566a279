//! Account decisions as tables.

use super::{
    authorized_keys::{AuthorizedKey, Others, wanted_text},
    database::Database,
    name::AccountName,
};

const ANN: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBPWOQ2r2JxPnzWQe9eDVvXFSmvhpbb9oBMk8mF6cnVv";
const BOB: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn key(line: &str) -> AuthorizedKey {
    AuthorizedKey::try_from(line.to_owned()).unwrap()
}

#[test]
fn names_are_those_that_the_tools_take() {
    for name in ["ann", "_apt", "www-data", "a.b", "A1", "machine$", "1st"] {
        assert!(name.parse::<AccountName>().is_ok(), "{name}");
    }
    let long = "a".repeat(33);
    for name in ["", "-a", ".a", "a b", "a:b", "a/b", "a,b", "ä", "12", "$", "a$b", "+a", "~a", long.as_str()]
    {
        assert!(name.parse::<AccountName>().is_err(), "{name}");
    }
}

#[test]
fn a_key_is_told_by_its_kind_and_its_bytes() {
    for line in [ANN.to_owned(), format!("{ANN} a comment"), format!("command=\"echo a b\",no-pty {ANN} x")] {
        assert!(AuthorizedKey::try_from(line.clone()).is_ok(), "{line}");
    }
    let other_kind = ANN.replace("ssh-ed25519", "ssh-rsa");
    for line in
        ["", "ssh-ed25519", "ssh-ed25519 !!", "AAAA", "a b c", other_kind.as_str(), &format!("{ANN}\n{BOB}")]
    {
        assert!(AuthorizedKey::try_from(line.to_owned()).is_err(), "{line}");
    }
}

#[test]
fn a_file_of_keys_keeps_what_is_not_ours() {
    let (ann, bob) = (format!("{ANN} ann"), format!("{BOB} bob"));
    let rows = [
        ("", vec![&ann], Others::Stay, Some(format!("{ann}\n"))),
        ("# c\n", vec![&ann], Others::Stay, Some(format!("# c\n{ann}\n"))),
        (&*format!("{bob}\n{ann}\n"), vec![&ann], Others::Stay, None),
        (&*format!("{bob}\n{ann}\n"), vec![&ann], Others::Go, Some(format!("{ann}\n"))),
        (&*format!("{ANN} old\n"), vec![&ann], Others::Stay, Some(format!("{ann}\n"))),
        (&*format!("{ann}\n{ann}\n"), vec![&ann], Others::Stay, Some(format!("{ann}\n"))),
        (&*format!("# c\n\n{bob}\n"), vec![], Others::Go, Some("# c\n\n".to_owned())),
        ("", vec![], Others::Go, None),
    ];
    for (old, keys, others, new) in rows {
        let keys: Vec<AuthorizedKey> = keys.into_iter().map(|line| key(line)).collect();
        assert_eq!(wanted_text(old, &keys, others), new, "{old:?}");
        let result = new.unwrap_or_else(|| old.to_owned());
        assert_eq!(wanted_text(&result, &keys, others), None, "a second time: {old:?}");
    }
}

#[test]
fn the_account_files_are_read_as_the_system_reads_them() {
    let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:10:20:Ann,,,:/home/ann:/bin/sh\nann:x:11:21::/:\nbroken\n+::::::\n";
    let group = "root:x:0:\nstaff:x:20:bob,ann\ncrew:x:30:ann\nann:x:40:\n";
    let shadow = "ann:$6$x:19000:0:99999:7::20000:\nroot:*:19000::::::\n";
    let database = Database::parse(passwd, group, Some(shadow));
    assert_eq!(database.users["ann"].uid, 10);
    assert_eq!(database.groups_of("ann"), ["crew", "staff"]);
    assert_eq!((database.group_name(20), database.group_name(99)), ("staff".to_owned(), "99".to_owned()));
    assert_eq!((database.user_with(10), database.group_with(30)), (Some("ann"), Some("crew")));
    assert_eq!(database.with_primary_group(20), ["ann"]);
    assert_eq!(database.shadow("ann").unwrap().expires, Some(20000));
    assert_eq!(database.shadow("root").unwrap().password, "*");
    assert!(Database::parse(passwd, group, None).shadow("ann").is_none());
}

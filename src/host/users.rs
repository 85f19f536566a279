//! Who there is on the machine: users and groups by name and by number.
//!
//! A static binary has no name service switch, so `/etc/passwd` and `/etc/group` are read directly, and whoever is
//! not in them is asked of `getent`, which knows directory services too.

use std::{
    collections::HashMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{
    interrupt::Interrupt,
    process::{Command, Exit, Keep, Runner},
};
use crate::vocabulary::Account;

/// How long a directory service may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// An answer of `getent` is one line; longer than this is none.
const LONGEST_ANSWER: usize = 1024 * 1024;

/// The users and groups of the machine, read when first needed.
pub(crate) struct Users {
    users: Mutex<Database>,
    groups: Mutex<Database>,
}

/// A user as the machine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    /// The group that it is in first of all.
    pub(crate) gid: u32,
    pub(crate) home: String,
    /// The shell that a login starts; empty when the machine says none.
    pub(crate) shell: String,
}

impl Default for Users {
    fn default() -> Self {
        Self { users: Mutex::new(Database::new("passwd")), groups: Mutex::new(Database::new("group")) }
    }
}

impl Users {
    /// The user's number; `None` when there is no such user.
    pub(crate) fn user_id(&self, user: &Account) -> Option<u32> {
        user.id().or_else(|| lock(&self.users).id(user.as_str()))
    }

    /// The group's number; `None` when there is no such group.
    pub(crate) fn group_id(&self, group: &Account) -> Option<u32> {
        group.id().or_else(|| lock(&self.groups).id(group.as_str()))
    }

    /// The user's name, or its number in digits when it has none.
    pub(crate) fn user_name(&self, uid: u32) -> String {
        lock(&self.users).name(uid)
    }

    /// Returns the name of a UID, if it has one.
    pub(crate) fn known_name(&self, uid: u32) -> Option<String> {
        Some(self.user_name(uid)).filter(|name| *name != uid.to_string())
    }

    /// The group's name, or its number in digits when it has none.
    pub(crate) fn group_name(&self, gid: u32) -> String {
        lock(&self.groups).name(gid)
    }

    /// All that is known of a user; `None` when there is no such user, or only its number.
    pub(crate) fn user(&self, user: &Account) -> Option<User> {
        let mut users = lock(&self.users);
        let line = match user.id() {
            Some(uid) => users.by_id(uid),
            None => users.by_name(user.as_str()),
        };
        let line = line?;
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _password, uid, gid, _description, home, rest @ ..] = fields.as_slice() else {
            return None;
        };
        let (name, home) = ((*name).to_owned(), (*home).to_owned());
        let shell = rest.first().copied().unwrap_or_default().to_owned();
        Some(User { name, uid: uid.parse().ok()?, gid: gid.parse().ok()?, home, shell })
    }

    /// Returns the home directory in the account of the user who runs ccm, whatever `$HOME` is.
    pub(crate) fn own_home(&self) -> Option<PathBuf> {
        let mut users = lock(&self.users);
        let line = users.by_id(rustix::process::getuid().as_raw())?;
        line.split(':').nth(5).filter(|home| home.starts_with('/')).map(PathBuf::from)
    }

    /// The numbers of all groups that a user is in.
    pub(crate) fn groups_of(&self, user: &User) -> Vec<u32> {
        let local = lock(&self.users).file().by_name(&user.name).is_some();
        let others = if local { lock(&self.groups).with_member(&user.name) } else { initgroups(&user.name) };
        let mut groups = vec![user.gid];
        groups.extend(others.into_iter().filter(|gid| *gid != user.gid));
        groups
    }

    /// Returns whose home directory a path is, of the users of this machine.
    pub(crate) fn with_home(&self, path: &Path) -> Option<String> {
        let mut users = lock(&self.users);
        users.file().text.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let home = fields.get(5).filter(|home| !home.is_empty())?;
            (Path::new(home) == path).then(|| fields[0].to_owned())
        })
    }

    /// Forgets what was read: something ran that may have made or removed accounts.
    pub(crate) fn forget(&self) {
        for database in [&self.users, &self.groups] {
            let mut database = lock(database);
            *database = Database::new(database.name);
        }
    }
}

fn lock(database: &Mutex<Database>) -> std::sync::MutexGuard<'_, Database> {
    database.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of the two account files, and what `getent` said of accounts that are not in it.
struct Database {
    name: &'static str,
    file: Option<Accounts>,
    asked: HashMap<String, Option<String>>,
}

/// What an account file says: of entries with the same name or number, the first.
#[derive(Default)]
struct Accounts {
    text: String,
    /// Where the lines are.
    names: HashMap<String, Range<usize>>,
    ids: HashMap<u32, Range<usize>>,
}

impl Database {
    fn new(name: &'static str) -> Self {
        Self { name, file: None, asked: HashMap::new() }
    }

    fn id(&mut self, name: &str) -> Option<u32> {
        let line = self.by_name(name)?;
        entry(&line).map(|(_, id)| id)
    }

    fn name(&mut self, id: u32) -> String {
        let line = self.by_id(id);
        line.as_deref().and_then(entry).map_or_else(|| id.to_string(), |(name, _)| name.to_owned())
    }

    fn by_name(&mut self, name: &str) -> Option<String> {
        if let Some(line) = self.file().by_name(name) {
            return Some(line.to_owned());
        }
        // An earlier resource of this run may have made the account.
        self.file = None;
        let found = self.file().by_name(name).map(str::to_owned);
        found.or_else(|| self.ask(name))
    }

    fn by_id(&mut self, id: u32) -> Option<String> {
        let found = self.file().by_id(id).map(str::to_owned);
        found.or_else(|| self.ask(&id.to_string()))
    }

    /// The numbers of the groups that list a user as their member.
    fn with_member(&mut self, user: &str) -> Vec<u32> {
        let lists =
            |line: &&str| line.split(':').nth(3).is_some_and(|of| of.split(',').any(|name| name == user));
        self.file().text.lines().filter(lists).filter_map(entry).map(|(_, id)| id).collect()
    }

    fn file(&mut self) -> &Accounts {
        let name = self.name;
        self.file.get_or_insert_with(|| {
            let bytes = fs::read(format!("/etc/{name}")).unwrap_or_default();
            Accounts::read(String::from_utf8_lossy(&bytes).into_owned())
        })
    }

    fn ask(&mut self, key: &str) -> Option<String> {
        let name = self.name;
        let answer = || getent(name, key).filter(|line| entry(line).is_some());
        self.asked.entry(key.to_owned()).or_insert_with(answer).clone()
    }
}

impl Accounts {
    fn read(text: String) -> Self {
        let mut accounts = Self::default();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            if let Some((name, id)) = entry(line) {
                let place = start..start + line.trim_end().len();
                accounts.names.entry(name.to_owned()).or_insert_with(|| place.clone());
                accounts.ids.entry(id).or_insert(place);
            }
            start += line.len();
        }
        Self { text, ..accounts }
    }

    fn by_name(&self, name: &str) -> Option<&str> {
        self.names.get(name).map(|place| &self.text[place.clone()])
    }

    fn by_id(&self, id: u32) -> Option<&str> {
        self.ids.get(&id).map(|place| &self.text[place.clone()])
    }
}

/// Name and number from a line of `/etc/passwd` or `/etc/group`: both keep them in the same places.
fn entry(line: &str) -> Option<(&str, u32)> {
    let mut parts = line.split(':');
    let (name, _password, id) = (parts.next()?, parts.next()?, parts.next()?);
    Some((name, id.parse().ok()?))
}

/// The groups of a user that a directory service knows: its name, then their numbers.
fn initgroups(user: &str) -> Vec<u32> {
    let line = getent("initgroups", user).unwrap_or_default();
    line.split_whitespace().skip(1).filter_map(|gid| gid.parse().ok()).collect()
}

/// The line that `getent` prints, if there is one in time.
fn getent(database: &str, key: &str) -> Option<String> {
    let command =
        Command::new("getent").arguments([database, key]).timeout(PATIENCE).keep(Keep::Whole(LONGEST_ANSWER));
    // A signal must not make somebody look missing: the question is short, and whoever asks stops after it.
    let finished = command.run(&Runner::default(), &Interrupt::never().ok()?).ok()?;
    let line = finished.stdout.text().trim_end().to_owned();
    (finished.exit == Exit::Code(0)).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_of_the_same_account_are_equal() {
        let users = Users::default();
        assert_eq!(users.user_id(&"root".parse().unwrap()), Some(0));
        assert_eq!(users.user_id(&"0".parse().unwrap()), Some(0));
        assert_eq!(users.group_id(&"root".parse().unwrap()), Some(0));
        assert_eq!(users.user_name(0), "root");
        assert_eq!(users.group_name(0), "root");
    }

    #[test]
    fn the_first_of_several_entries_counts() {
        let text = "root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/root:/bin/sh\nroot:x:7:7::/:/bin/sh\n";
        let accounts = Accounts::read(text.to_owned());
        assert_eq!(accounts.by_id(0), Some("root:x:0:0::/root:/bin/sh"));
        assert_eq!(accounts.by_name("root").and_then(entry), Some(("root", 0)));
        assert_eq!(accounts.by_name("toor").and_then(entry), Some(("toor", 0)));
    }

    #[test]
    fn accounts_that_do_not_exist_have_no_number_and_numbers_without_a_name_stay_numbers() {
        let users = Users::default();
        assert_eq!(users.user_id(&"no-such-user-here".parse().unwrap()), None);
        assert_eq!(users.group_id(&"no-such-group-here".parse().unwrap()), None);
        assert_eq!(users.user_name(3_999_999_999), "3999999999");
    }

    #[test]
    fn a_user_has_a_home_and_groups() {
        let users = Users::default();
        let root = users.user(&"root".parse().unwrap()).unwrap();
        assert_eq!((root.name.as_str(), root.uid, root.gid), ("root", 0, 0));
        assert!(root.home.starts_with('/'));
        assert_eq!(users.user(&"0".parse().unwrap()), Some(root.clone()));
        assert_eq!(users.groups_of(&root).first(), Some(&0));
        assert_eq!(users.user(&"3999999999".parse().unwrap()), None);
    }

    #[test]
    fn members_are_found_by_their_whole_name() {
        let text = "a:x:10:ann,bob\nb:x:11:bobby\nc:x:12:\nd:x:13:bob\nbroken\n".to_owned();
        let mut groups = Database { file: Some(Accounts::read(text)), ..Database::new("group") };
        assert_eq!(groups.with_member("bob"), [10, 13]);
        assert!(groups.with_member("nobody").is_empty());
    }

    #[test]
    fn what_was_forgotten_is_read_again() {
        let users = Users::default();
        lock(&users.users).file = Some(Accounts::read("ghost:x:4000000000:1::/:/bin/sh\n".to_owned()));
        assert_eq!(users.user_name(4_000_000_000), "ghost");
        users.forget();
        assert_eq!(users.user_name(4_000_000_000), "4000000000");
        assert_eq!(users.user_name(0), "root");
    }
}

//! What versions are made of, and their orders, against dpkg and rpm themselves.

use std::{cmp::Ordering, fmt::Write, fs, process::Command};

use super::Scheme;
use crate::{host::process::locate, skip::skip};

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    /// A few letters, with digits more often than anything else.
    fn word(&mut self, letters: &[u8]) -> String {
        let length = self.roll(6);
        (0..length)
            .map(|_| match self.roll(3) {
                0 => char::from(b'0' + u8::try_from(self.roll(10)).unwrap()),
                1 => ['0', '1'][self.roll(2)],
                _ => char::from(letters[self.roll(letters.len())]),
            })
            .collect()
    }

    fn epoch(&mut self) -> &'static str {
        ["", "", "", "0:", "1:", "2:"][self.roll(6)]
    }

    fn version(&mut self, letters: &[u8]) -> String {
        format!("{}{}", self.roll(12), self.word(letters))
    }

    /// Two versions, of which the second is often the first with a small change.
    fn pair(&mut self, letters: &[u8]) -> (String, String) {
        let a = self.version(letters);
        let b = match self.roll(4) {
            0 => self.version(letters),
            1 => format!("{a}{}", self.word(letters)),
            2 => a.clone(),
            _ => format!("{}{}{}", &a[..1], self.word(letters), &a[1..]),
        };
        (format!("{}{a}", self.epoch()), format!("{}{b}", self.epoch()))
    }
}

fn sign(ordering: Ordering) -> &'static str {
    match ordering {
        Ordering::Less => "lt",
        Ordering::Equal => "eq",
        Ordering::Greater => "gt",
    }
}

/// dpkg compares one pair per process, so it is asked about neighbours only: in a row that it agrees with from one to the next,
/// each two have the order of their places.
#[test]
fn a_hundred_thousand_pairs_are_ordered_as_dpkg_orders_them() {
    if locate("dpkg").is_err() {
        skip("needs dpkg");
        return;
    }
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut row = Vec::new();
    for _ in 0..400 {
        let (a, b) = dice.pair(b"~~+.aAbzZ");
        let revision = |dice: &mut Dice| ["", "-0", "-1", "-1~x", "-1+b1", "-a.1"][dice.roll(6)];
        row.extend([a + revision(&mut dice), b + revision(&mut dice)]);
    }
    row.sort_by(|a, b| Scheme::Debian.order(a, b));
    let mut rank = 0;
    let mut ranked = vec![(rank, &row[0])];
    for pair in row.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        let order = Scheme::Debian.order(a, b);
        let agrees = Command::new("dpkg").args(["--compare-versions", a, sign(order), b]).status().unwrap();
        assert!(agrees.success(), "dpkg does not say {a} {} {b}", sign(order));
        rank += usize::from(order.is_lt());
        ranked.push((rank, b));
    }
    for (rank, a) in &ranked {
        for (other, b) in &ranked {
            assert_eq!(Scheme::Debian.order(a, b), rank.cmp(other), "{a} and {b}");
        }
    }
}

#[test]
fn ten_thousand_pairs_are_ordered_as_rpm_orders_them() {
    const PAIRS: usize = 10_000;
    if locate("rpm").is_err() {
        skip("needs rpm");
        return;
    }
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut pairs = String::new();
    let mut expected = Vec::new();
    for _ in 0..PAIRS {
        let (a, b) = dice.pair(b"~~^^.._+aAbzZ");
        let release = |dice: &mut Dice| ["-0", "-1", "-1.el9", "-1~x", "-1^x", "-2"][dice.roll(6)];
        let (a, b) = (a + release(&mut dice), b + release(&mut dice));
        writeln!(pairs, "{a} {b}").unwrap();
        expected.push(format!("{a} {} {b}", sign(Scheme::Rpm.order(&a, &b))));
    }
    let file = std::env::temp_dir().join(format!("ccm-rpm-pairs-{}", std::process::id()));
    fs::write(&file, pairs).unwrap();
    let script = format!(
        "%{{lua: for line in io.lines('{}') do local a, b = line:match('(%S+) (%S+)'); \
         print(a .. ' ' .. ({{'lt', 'eq', 'gt'}})[rpm.vercmp(a, b) + 2] .. ' ' .. b .. '\\n') end}}",
        file.display()
    );
    let output = Command::new("rpm").args(["--eval", &script]).output().unwrap();
    fs::remove_file(file).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let said: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(said.len(), PAIRS, "{}", String::from_utf8_lossy(&output.stderr));
    for (said, expected) in said.iter().zip(&expected) {
        assert_eq!(said, expected);
    }
}

#[test]
fn a_version_has_an_epoch_and_a_release_where_they_are_written() {
    for scheme in [Scheme::Debian, Scheme::Rpm] {
        for (version, epoch, release) in [
            ("1.24", None, None),
            ("1.24-2", None, Some("2")),
            ("3:1.24", Some("3"), None),
            ("0:1.24-2.el9", Some("0"), Some("2.el9")),
        ] {
            assert_eq!(
                (scheme.epoch(version), scheme.release(version)),
                (epoch, release),
                "{scheme:?} {version}"
            );
        }
    }
}

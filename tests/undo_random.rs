//! Random manifests on random trees: an undo restores the tree, and a plan makes the same changes as a run.

use std::fmt::Write;

use crate::support::{World, has, is_root, sh, side_by_side};

/// A generator of numbers that depend only on the seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.roll(choices.len())]
    }
}

const NAMES: [&str; 8] = ["a", "b", "c", "d/a", "d/b", "d/e/a", "link", "deep"];
const MODES: [&str; 4] = ["0600", "0644", "0750", "0755"];

/// Returns a script that creates a tree.
fn tree(dice: &mut Dice) -> String {
    let mut script = "mkdir -p d/e\n".to_owned();
    for name in NAMES {
        let (mode, number) = (dice.one_of(&MODES), dice.roll(1000));
        let creation = match dice.roll(5) {
            0 => continue,
            1 => format!("ln -s {} {name}", dice.one_of(&["a", "d", "nowhere"])),
            2 => format!(
                "mkdir {name}; echo {number} >{name}/in; mkdir {name}/more; echo x >{name}/more/{number}"
            ),
            _ => format!("printf 'line {number}\\nsecond\\n' >{name}"),
        };
        writeln!(script, "{creation}\n[ -L {name} ] || chmod {mode} {name}").unwrap();
        if dice.roll(3) == 0 {
            writeln!(script, "[ -L {name} ] || setfattr -n user.note -v {number} {name}").unwrap();
        }
        if dice.roll(3) == 0 {
            writeln!(script, "[ -L {name} ] || setfacl -m u:12345:rw {name}").unwrap();
        }
        if is_root() && dice.roll(3) == 0 {
            writeln!(script, "chown -hR 1234:2345 {name}").unwrap();
        }
    }
    script
}

/// Returns a manifest of resources, some of which can fail.
fn manifest(dice: &mut Dice) -> String {
    let mut text = "- file:\n".to_owned();
    for name in NAMES {
        let mode = dice.one_of(&MODES);
        let properties = match dice.roll(9) {
            0 => continue,
            1 => "ensure: absent, force: true".to_owned(),
            2 => format!("ensure: directory, $OWN, mode: '{mode}', force: true"),
            3 => format!("ensure: directory, $OWN, mode: '{mode}', purge: true, force: true"),
            4 => "ensure: link, target: elsewhere, force: true".to_owned(),
            5 => format!("$OWN, mode: '{mode}'"),
            6 => "create: true, $OWN, mode: '0644', edit: [{ line: third }]".to_owned(),
            _ => format!("content: \"text {}\\n\", $OWN, mode: '{mode}', force: true", dice.roll(1000)),
        };
        writeln!(text, "    - $W/{name}: {{ {properties} }}").unwrap();
    }
    text.push_str("    - $W/last: { content: x, $OWN, mode: '0644' }\n");
    text
}

/// Everything that undo restores.
fn look(world: &World) -> String {
    let look = "find . -printf '%p %y %m %U %G %l\\n' | sort; find . ! -type l | sort | xargs getfacl -n -P; find . | sort | xargs getfattr -h -d -m -; \
                find . -type f | sort | xargs -r sha256sum";
    sh(look, &world.path(""))
}

#[test]
fn random_changes_are_planned_and_undone() {
    if !["setfattr", "getfacl"].into_iter().all(has) {
        return;
    }
    side_by_side(1..=24_u64, |seed| {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (tree, manifest) = (tree(&mut dice), manifest(&mut dice));
        let new = || {
            let world = World::new().manifest(&manifest);
            sh(&tree, &world.path(""));
            world
        };
        let (applied, planned) = (new(), new());
        let before = look(&applied);
        assert!(look(&planned) == before);
        let run = applied.apply();
        let made = planned.ccm(["plan", "site.yaml", "-o", "site.plan"]).run();
        if made.code == 0 {
            planned.ccm(["apply", "site.plan"]).run().exits(0);
            run.exits(0);
            assert_eq!(look(&planned), look(&applied), "seed {seed}: {manifest}");
            planned.ccm(["undo", "last"]).run().exits(0);
            assert_eq!(look(&planned), before, "seed {seed}: {manifest}");
        }
        applied.ccm(["undo", "last"]).run().exits(0);
        assert_eq!(look(&applied), before, "seed {seed}: {manifest}\n{run}");
    });
}

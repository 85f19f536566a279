//! What a dry run takes to be there.

use super::*;
use crate::{FileKind, Intent, Occupancy, Parents, Predicted, Prediction, Problem, walk::MOST_LINKS};

/// What would be at a path, for certain: kind, owner, mode and checksum.
fn at(prediction: &Prediction, path: &Path) -> Option<(FileKind, u32, u32, Option<String>)> {
    told(prediction.inspect(path).unwrap())
}

fn told(predicted: Option<Predicted>) -> Option<(FileKind, u32, u32, Option<String>)> {
    match predicted {
        Some(Predicted::Entry(found)) => {
            Some((found.entry.kind, found.entry.uid, found.entry.mode, found.sha256))
        }
        _ => None,
    }
}

/// The checksum of what is written.
#[expect(clippy::unnecessary_wraps, reason = "files on disk have none")]
fn sum() -> Option<String> {
    Some("sum".to_owned())
}

#[test]
fn a_link_is_itself_to_who_looks_and_its_target_to_who_follows() {
    let (scratch, mut prediction) = (Scratch::new(), Prediction::default());
    let (file, link) = (scratch.at("file"), scratch.at("link"));
    prediction.simulate(&file, Intent::Write(mine(0o640)), sum()).unwrap();
    prediction.simulate(&link, Intent::MakeLink("file".into()), None).unwrap();
    let is_link = FileKind::Symlink { target: "file".into() };
    assert_eq!(at(&prediction, &link).unwrap().0, is_link);
    assert_eq!(told(prediction.look(&link).unwrap()).unwrap().0, is_link);
    let followed = told(prediction.follow(&link).unwrap());
    assert_eq!(followed, Some((FileKind::File, mine(0).uid, 0o640, sum())));
}

#[test]
fn as_many_links_are_followed_as_in_a_real_run() {
    let scratch = Scratch::new();
    for number in 0..=MOST_LINKS {
        scratch.link(&number.to_string(), (number + 1).to_string());
    }
    let end = scratch.file(&(MOST_LINKS + 1).to_string(), "");
    let prediction = Prediction::default();
    assert_eq!(prediction.destination(&scratch.at("1")), Some(end));
    assert_eq!(prediction.destination(&scratch.at("0")), None, "one too many");
}

#[test]
fn the_names_in_a_directory_are_those_right_below_it() {
    let (scratch, mut prediction) = (Scratch::new(), Prediction::default());
    scratch.directory("d", 0, 0o755);
    let [old, gone] = ["d/old", "d/gone"].map(|name| scratch.file(name, ""));
    prediction.simulate(&gone, Intent::Remove, None).unwrap();
    prediction.simulate(&old, Intent::SetAttributes(mine(0o600)), None).unwrap();
    let make = Intent::MakeDirectory(mine(0o755), Parents::Expect);
    prediction.simulate(&scratch.at("d/sub"), make, None).unwrap();
    for name in ["d/new", "d/sub/deep"] {
        prediction.simulate(&scratch.at(name), Intent::Write(mine(0o600)), sum()).unwrap();
    }
    let mut names = prediction.names(&scratch.at("d")).unwrap();
    names.sort();
    assert_eq!(names, ["new", "old", "sub"]);
}

#[test]
fn what_is_predicted_is_judged_like_what_is_there() {
    let (scratch, mut prediction) = (Scratch::new(), Prediction::default());
    let (gone, file, directory) = (scratch.file("gone", ""), scratch.at("file"), scratch.at("directory"));
    prediction.simulate(&gone, Intent::Remove, None).unwrap();
    let error = prediction.simulate(&gone, Intent::SetAttributes(mine(0o600)), None).unwrap_err();
    assert!(matches!(&error.problem, Problem::Changed { at } if *at == gone), "{error}");
    let make = Intent::MakeDirectory(mine(0o755), Parents::Expect);
    prediction.simulate(&directory, make, None).unwrap();
    let error = prediction.simulate(&directory, Intent::Write(mine(0o600)), sum()).unwrap_err();
    assert!(matches!(&error.problem, Problem::IsADirectory { at } if *at == directory), "{error}");
    prediction.simulate(&file, Intent::Write(mine(0o644)), sum()).unwrap();
    prediction.simulate(&file, Intent::SetAttributes(mine(0o600)), sum()).unwrap();
    assert_eq!(at(&prediction, &file), Some((FileKind::File, mine(0).uid, 0o600, sum())));
}

#[test]
fn only_root_and_its_owner_change_what_would_be_there() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.directory("own", NOBODY, 0o755);
    let (file, bobs) = (scratch.at("own/f"), scratch.at("own/bobs"));
    let mut prediction = Prediction::default();
    prediction.simulate(&scratch.at("f"), Intent::Write(of(BOB, 0o644)), sum()).unwrap();
    prediction.simulate(&scratch.at("f"), Intent::SetAttributes(of(BOB, 0o600)), sum()).unwrap();
    as_user(NOBODY, &[NOBODY], || {
        let mut prediction = Prediction::default();
        prediction.simulate(&file, Intent::Write(mine(0o644)), sum()).unwrap();
        prediction.simulate(&file, Intent::SetAttributes(mine(0o600)), sum()).unwrap();
        prediction.assume(&bobs, BOB, BOB);
        let error = prediction.simulate(&bobs, Intent::SetAttributes(mine(0o600)), None).unwrap_err();
        assert!(matches!(&error.problem, Problem::Denied { at, .. } if *at == bobs), "{error}");
    });
}

#[test]
fn directories_that_lead_somewhere_are_predicted_as_they_would_be_made() {
    if !is_root() {
        return;
    }
    let (scratch, mut prediction) = (Scratch::new(), Prediction::default());
    scratch.directory("bobs", BOB, 0o755);
    for (path, made) in [("bobs/a/b", of(BOB, 0o700)), ("a/b", of(BOB, 0o700))] {
        let make = Intent::MakeDirectory(made, Parents::Make);
        prediction.simulate(&scratch.at(path), make, None).unwrap();
        let parent = if path == "a/b" { 0 } else { BOB };
        let above = scratch.at(path).parent().unwrap().to_owned();
        assert_eq!(at(&prediction, &above), Some((FileKind::Directory, parent, 0o755, None)));
        assert_eq!(at(&prediction, &scratch.at(path)), Some((FileKind::Directory, BOB, 0o700, None)));
    }
}

#[test]
fn a_directory_that_is_filled_is_made_if_it_is_missing_and_stays_as_it_is_otherwise() {
    let (scratch, mut prediction) = (Scratch::new(), Prediction::default());
    let there = scratch.directory("there", mine(0).uid, 0o711);
    prediction.fill(&there, mine(0o750)).unwrap();
    prediction.fill(&scratch.at("a/b"), mine(0o750)).unwrap();
    for (name, mode) in [("there", 0o711), ("a", 0o755), ("a/b", 0o750)] {
        let found = at(&prediction, &scratch.at(name));
        assert_eq!(found, Some((FileKind::Directory, mine(0).uid, mode, None)), "{name}");
    }
}

#[test]
fn in_what_is_filled_is_something_and_below_it_perhaps() {
    let (scratch, mut prediction) = (Scratch::new(), Prediction::default());
    let there = scratch.directory("there", mine(0).uid, 0o755);
    let below = scratch.directory("there/below", mine(0).uid, 0o755);
    let occupancy =
        |prediction: &Prediction| [&there, &below].map(|path| prediction.occupancy(path).unwrap());
    assert_eq!(occupancy(&prediction), [Occupancy::Occupied, Occupancy::Empty]);
    prediction.fill(&there, mine(0o755)).unwrap();
    assert_eq!(occupancy(&prediction), [Occupancy::Occupied, Occupancy::Unknown]);
    scratch.file("there/below/file", "");
    assert_eq!(prediction.occupancy(&below).unwrap(), Occupancy::Occupied, "what the disk has in it counts");
    fs::remove_file(below.join("file")).unwrap();
    prediction.simulate(&below, Intent::Remove, None).unwrap();
    assert_eq!(
        prediction.occupancy(&there).unwrap(),
        Occupancy::Occupied,
        "nobody knows what it was filled with"
    );
    prediction.simulate(&there, Intent::SetAttributes(mine(0o700)), None).unwrap();
    assert_eq!(prediction.occupancy(&there).unwrap(), Occupancy::Occupied);
    prediction.simulate(&below, Intent::MakeDirectory(mine(0o755), Parents::Expect), None).unwrap();
    assert_eq!(prediction.occupancy(&below).unwrap(), Occupancy::Empty, "it was gone");
}

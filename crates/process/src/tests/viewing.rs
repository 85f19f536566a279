//! What a command sees that nobody else does.

use std::os::unix::fs::{MetadataExt, chown, symlink};

use super::starting::is_root;
use super::*;

/// Runs a script in `folder` of the scratch directory with a view of the text `new` as `seen`, and returns its output.
fn shown(scratch: &Scratch, script: &str) -> String {
    let file = fs::File::open(scratch.file("draft", 0o640, "new\n")).unwrap();
    let target = scratch.path("folder/seen");
    seen(scratch, script, vec![(target, Shown::File(file.as_fd()))])
}

/// Runs a script in `folder` of the scratch directory with a view of these entries, and returns its output.
fn seen(scratch: &Scratch, script: &str, entries: Vec<(PathBuf, Shown)>) -> String {
    let view = View { entries };
    let output = output_of(&Command::shell(script).directory(scratch.path("folder")).view(view));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(scratch.0.to_str().unwrap()), "others see it too: {mounts}");
    output
}

#[test]
fn a_file_is_seen_in_the_place_of_another_and_what_is_written_beside_it_stays() {
    if !is_root() {
        skip("needs root to make mounts");
        return;
    }
    let scratch = Scratch::new();
    let old = scratch.file("folder/seen", 0o644, "old\n");
    assert_eq!(shown(&scratch, "cat seen; stat -c %a seen; echo more > beside"), "new\n640");
    assert_eq!(fs::read_to_string(old).unwrap(), "old\n");
    assert_eq!(fs::read_to_string(scratch.path("folder/beside")).unwrap(), "more\n");
}

#[test]
fn a_file_is_seen_where_there_is_none_in_a_directory_that_looks_as_before() {
    if !is_root() {
        skip("needs root to make mounts");
        return;
    }
    for link in [None, Some("beside")] {
        let scratch = Scratch::new();
        scratch.file("folder/beside", 0o644, "beside\n");
        let (folder, seen) = (scratch.path("folder"), scratch.path("folder/seen"));
        if let Some(link) = link {
            symlink(link, &seen).unwrap();
        }
        chown(&folder, Some(65_534), Some(65_533)).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o3751)).unwrap();
        let script = "cat seen beside; ls -A; stat -c '%a %u %g' . seen; echo more > another; \
                      grep -F ' - tmpfs view ' /proc/self/mountinfo | cut -d ' ' -f 6 | cut -d , -f 1-3";
        let expected = "new\nbeside\nbeside\nseen\n3751 65534 65533\n640 0 0\nrw,nosuid,nodev";
        assert_eq!(shown(&scratch, script), expected, "{link:?}");
        assert_eq!(fs::read_link(&seen).ok(), link.map(PathBuf::from));
        assert_eq!(fs::read_to_string(scratch.path("folder/beside")).unwrap(), "beside\n");
        assert!(!scratch.path("folder/another").exists());
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o3751);
    }
}

#[test]
fn view_shows_files_links_removals_and_directories_together() {
    if !is_root() {
        skip("needs root to make mounts");
        return;
    }
    let scratch = Scratch::new();
    for name in ["folder/kept", "folder/changed", "folder/gone", "folder/old/inner", "folder/deep/changed"] {
        scratch.file(name, 0o644, "old\n");
    }
    let (one, two) = (scratch.file("one", 0o600, "one\n"), scratch.file("two", 0o640, "two\n"));
    let path = |name: &str| scratch.path(name);
    let directory = Shown::Directory { uid: 65534, gid: 65533, mode: 0o750, is_new: true };
    let entries = vec![
        (path("folder/changed"), Shown::FileAt(one.clone())),
        (path("folder/deep/changed"), Shown::FileAt(two.clone())),
        (path("folder/gone"), Shown::Nothing),
        (path("folder/link"), Shown::Link("changed".into())),
        (path("folder/new/deep/file"), Shown::FileAt(two)),
        (path("folder/old"), directory),
        (path("folder/old/file"), Shown::FileAt(one)),
    ];
    let script = "find . -mindepth 1 | sort; cat kept changed link deep/changed new/deep/file old/file; \
                  stat -c '%a %u %g' old new/deep/file";
    let expected = "./changed\n./deep\n./deep/changed\n./kept\n./link\n./new\n./new/deep\n./new/deep/file\n./old\n\
                    ./old/file\nold\none\none\ntwo\ntwo\none\n750 65534 65533\n640 0 0";
    assert_eq!(seen(&scratch, script, entries), expected);
    assert!(scratch.path("folder/gone").exists() && scratch.path("folder/old/inner").exists());
    assert!(!scratch.path("folder/new").exists() && !scratch.path("folder/link").exists());
}

#[test]
fn view_keeps_mounts_below_a_covered_directory() {
    if !is_root() {
        skip("needs root to make mounts");
        return;
    }
    let scratch = Scratch::new();
    scratch.file("folder/a file/inner", 0o644, "below\n");
    let draft = scratch.file("draft", 0o644, "new\n");
    let inner = scratch.path("folder/a file");
    rustix::mount::mount_bind("/proc/self", &inner).unwrap();
    let entries = vec![
        (scratch.path("folder/new"), Shown::FileAt(draft.clone())),
        (scratch.path("folder/a file/new"), Shown::Nothing),
    ];
    let view = View { entries };
    let output = output_of(
        &Command::shell("cat new; test -e 'a file/status' && echo kept")
            .directory(scratch.path("folder"))
            .view(view),
    );
    rustix::mount::unmount(&inner, rustix::mount::UnmountFlags::empty()).unwrap();
    assert_eq!(output, "new\nkept");
}

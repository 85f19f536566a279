//! What a command sees that nobody else does.

use std::os::unix::fs::{MetadataExt, chown, symlink};

use super::starting::is_root;
use super::*;

/// What a script prints that is run in `folder` of the scratch directory and sees the text `new` there, as `seen`.
fn shown(scratch: &Scratch, script: &str) -> String {
    let file = fs::File::open(scratch.file("draft", 0o640, "new\n")).unwrap();
    let target = scratch.path("folder/seen");
    let view = View { file: file.as_fd(), target: &target };
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
                      grep -F ' - tmpfs ccm ' /proc/self/mountinfo | cut -d ' ' -f 6 | cut -d , -f 1-3";
        let expected = "new\nbeside\nbeside\nseen\n3751 65534 65533\n640 0 0\nrw,nosuid,nodev";
        assert_eq!(shown(&scratch, script), expected, "{link:?}");
        assert_eq!(fs::read_link(&seen).ok(), link.map(PathBuf::from));
        assert_eq!(fs::read_to_string(scratch.path("folder/beside")).unwrap(), "beside\n");
        assert!(!scratch.path("folder/another").exists());
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o3751);
    }
}

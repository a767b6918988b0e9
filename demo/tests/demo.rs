//! The demo drains what it says it drains, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::Command;

#[test]
fn both_notices_end_drained_and_nothing_of_it_runs_afterwards() {
    // The bed's folder lies in here, and the bed's processes name it.
    let place = tempfile::tempdir().unwrap();
    let demo =
        Command::new(env!("CARGO_BIN_EXE_spillway-demo")).arg("demo").env("TMPDIR", place.path()).output().unwrap();

    let text = String::from_utf8(demo.stdout).unwrap();
    let errors = String::from_utf8_lossy(&demo.stderr);
    assert!(demo.status.success(), "{}\n{text}\n{errors}", demo.status);
    assert_eq!(text.matches("The receipt: drained: all ").count(), 2, "{text}");
    assert!(text.contains("hook drain completed with CONTINUE"), "{text}");
    let unfit = text.lines().find(|line| line.chars().count() > 100 || line.contains('\x1b'));
    assert_eq!(unfit, None, "it is read without colours in 100 columns");

    assert_eq!(processes_naming(place.path()), 0, "nothing runs");
    assert_eq!(place.path().read_dir().unwrap().count(), 0, "no file is left");
}

fn processes_naming(folder: &Path) -> usize {
    let name = folder.as_os_str().as_encoded_bytes();
    let mentions = |path: std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(name.len()).any(|window| window == name)
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|process| mentions(process.path().join("cmdline"))).count()
}

//! The demo drains both nodes, and leaves nothing behind.

use std::process::Command;

use spillway_bed::usage::processes_naming;

#[test]
fn both_notices_end_drained_without_leftovers() {
    // The bed's folder is in here, and the bed's processes name it.
    let place = tempfile::tempdir().unwrap();
    let demo =
        Command::new(env!("CARGO_BIN_EXE_spillway-demo")).arg("demo").env("TMPDIR", place.path()).output().unwrap();

    let text = String::from_utf8(demo.stdout).unwrap();
    let errors = String::from_utf8_lossy(&demo.stderr);
    assert!(demo.status.success(), "{}\n{text}\n{errors}", demo.status);
    assert_eq!(text.matches("The receipt: drained: all ").count(), 2, "{text}");
    assert!(text.contains("hook spillway completed with CONTINUE"), "{text}");
    let unfit = text.lines().find(|line| line.chars().count() > 100 || line.contains('\x1b'));
    assert_eq!(unfit, None, "no colours, and at most 100 columns");

    assert_eq!(processes_naming(place.path()).unwrap(), [""; 0], "nothing runs");
    assert_eq!(place.path().read_dir().unwrap().count(), 0, "no file is left");
}

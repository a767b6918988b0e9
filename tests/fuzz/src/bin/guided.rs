//! A target under libFuzzer, which draws inputs by coverage. `scripts/fuzz` builds and runs it.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use spillway_fuzz::{TARGETS, Target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = variable("SPILLWAY_FUZZ_TARGET");
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("unknown target {name:?}"))
});

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; start this by scripts/fuzz"))
}

/// Writes corpus and dictionary, which libFuzzer reads next.
fn begin() {
    let [corpus, dictionary] =
        ["SPILLWAY_FUZZ_CORPUS", "SPILLWAY_FUZZ_DICTIONARY"].map(|name| PathBuf::from(variable(name)));
    TARGET.write_seeds(&corpus, &dictionary).expect("the corpus can be written");
}

fuzz_target!(init: begin(), |input: &[u8]| (TARGET.examine)(input));

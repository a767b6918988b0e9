//! A target under libFuzzer, which draws inputs by coverage. `scripts/fuzz` builds and runs it.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use fastrand::Rng;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use serde_json::Value;
use spillway_fuzz::{TARGETS, Target, structure};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = variable("SPILLWAY_FUZZ_TARGET");
    let names = TARGETS.each_ref().map(|target| target.name);
    Target::named(&name).unwrap_or_else(|| panic!("unknown target {name:?}, known targets: {names:?}"))
});
static DONORS: LazyLock<Vec<Value>> = LazyLock::new(|| TARGET.donors());

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

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = Rng::with_seed(seed.into());
    let spoilt = if random.bool() { structure(&data[..size], &DONORS, &mut random) } else { None };
    match spoilt {
        Some(spoilt) if spoilt.len() <= max_size => {
            data[..spoilt.len()].copy_from_slice(&spoilt);
            spoilt.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
});

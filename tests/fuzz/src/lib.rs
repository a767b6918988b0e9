//! Fuzzing of parsers of untrusted input.
//!
//! * `targets`: a parser and its laws in each file
//! * `seeds`: valid input
//! * `spoil`: random changes of valid input
//!
//! `cargo test` examines seeds, spoilt seeds and `regressions`; `make fuzz` draws inputs by coverage (`bin/guided.rs`).

mod seeds;
mod spoil;
mod targets;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

pub use spoil::structure;
pub use targets::TARGETS;

/// A parser and its laws.
#[derive(Debug)]
pub struct Target {
    /// Name of its file in `targets`.
    pub name: &'static str,
    seeds: fn() -> Vec<String>,
    /// Panics if an input breaks a law.
    pub examine: fn(&[u8]),
}

impl Target {
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Seeds that are JSON, for changes of the structure.
    #[must_use]
    pub fn donors(&self) -> Vec<Value> {
        (self.seeds)().iter().filter_map(|seed| serde_json::from_str(seed).ok()).collect()
    }

    /// Writes the first corpus of libFuzzer, and a dictionary of its words.
    pub fn write_seeds(&self, corpus: &Path, dictionary: &Path) -> std::io::Result<()> {
        let seeds = (self.seeds)();
        for (n, seed) in seeds.iter().enumerate() {
            std::fs::write(corpus.join(format!("seed-{n:04}")), seed)?;
        }
        let words: BTreeSet<&str> = seeds.iter().flat_map(|seed| words(seed)).collect();
        let lines: Vec<_> = words.into_iter().map(|word| format!("\"{word}\"\n")).collect();
        std::fs::write(dictionary, lines.concat())
    }
}

/// Words that need no escapes in a dictionary of libFuzzer.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.:/ ".contains(c));
    parts.map(str::trim).filter(|word| (2..=40).contains(&word.len()))
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    /// Spoilt inputs of each target, by structure and by bytes.
    const SPOILT: usize = 4_000;

    fn regressions(target: &Target) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target.name);
        let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
        files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }

    /// Sequential, because the memory of a template is measured for the whole process.
    #[test]
    fn seeds_spoilt_seeds_and_regressions_obey_the_laws() {
        for target in &TARGETS {
            let examine = |input: &[u8]| {
                let result = std::panic::catch_unwind(|| (target.examine)(input));
                assert!(result.is_ok(), "{}: {}", target.name, String::from_utf8_lossy(input));
            };
            let (seeds, donors) = ((target.seeds)(), target.donors());
            for input in seeds.iter().map(|seed| seed.clone().into_bytes()).chain(regressions(target)) {
                examine(&input);
            }
            let mut random = Rng::with_seed(1);
            for seed in seeds.iter().cycle().take(SPOILT) {
                let seed = seed.as_bytes();
                examine(&structure(seed, &donors, &mut random).unwrap_or_else(|| seed.to_vec()));
                examine(&spoil::bytes(seed, &mut random));
            }
        }
    }
}

//! Fuzzing of what others write: for each parser a target, which says what must hold of whatever it is given.
//!
//! * `targets`: a file for each
//! * `seeds`: sound input to begin with
//! * `spoil`: how sound input is spoilt
//!
//! `cargo test` gives each target its seeds, some spoilt ones, and what once went wrong (`regressions`); `make fuzz` draws inputs by
//! what the code did with those before (`bin/guided.rs`).

mod seeds;
mod spoil;
mod targets;

use std::collections::BTreeSet;
use std::path::Path;

use fastrand::Rng;
use serde_json::Value;

pub use targets::TARGETS;

/// A parser, and what must hold of it.
#[derive(Debug)]
pub struct Target {
    /// The name of its file in `targets`.
    pub name: &'static str,
    /// What it takes: JSON is spoilt in its structure as well.
    form: Form,
    /// Sound input.
    seeds: fn() -> Vec<String>,
    /// Gives it an input, and panics if something does not hold.
    pub examine: fn(&[u8]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Text,
}

/// What spoils the input of a target.
#[derive(Debug)]
pub struct Spoiler {
    form: Form,
    donors: Vec<Value>,
}

impl Target {
    /// The target of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// What spoils its input.
    #[must_use]
    pub fn spoiler(&self) -> Spoiler {
        let donors = match self.form {
            Form::Json => (self.seeds)().iter().filter_map(|seed| serde_json::from_str(seed).ok()).collect(),
            Form::Text => Vec::new(),
        };
        Spoiler { form: self.form, donors }
    }

    /// Writes what libFuzzer begins with: a folder of seeds, and a dictionary of the words in them.
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

impl Spoiler {
    /// JSON with other JSON in it, if the input is JSON and is to be.
    pub fn structure(&self, input: &[u8], random: &mut Rng) -> Option<Vec<u8>> {
        (self.form == Form::Json).then(|| spoil::structure(input, &self.donors, random))?
    }
}

/// The words of a text that a dictionary of libFuzzer's takes as they are.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.:/ ".contains(c));
    parts.map(str::trim).filter(|word| (2..=40).contains(&word.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many spoilt inputs each target gets.
    const SPOILT: usize = 4_000;

    /// What once went wrong there, as files.
    fn regressions(target: &Target) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target.name);
        let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
        files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }

    /// One after another: what a template takes is measured for the whole process.
    #[test]
    fn what_must_hold_does_of_seeds_of_spoilt_ones_and_of_what_once_went_wrong() {
        for target in &TARGETS {
            let examine = |input: &[u8]| {
                let shown = String::from_utf8_lossy(input).into_owned();
                let held = std::panic::catch_unwind(|| (target.examine)(input));
                assert!(held.is_ok(), "{}: {shown}", target.name);
            };
            let (seeds, spoiler) = ((target.seeds)(), target.spoiler());
            for input in seeds.iter().map(|seed| seed.clone().into_bytes()).chain(regressions(target)) {
                examine(&input);
            }
            let mut random = Rng::with_seed(1);
            for seed in seeds.iter().cycle().take(SPOILT) {
                let otherwise = spoiler.structure(seed.as_bytes(), &mut random);
                examine(&otherwise.unwrap_or_else(|| seed.clone().into_bytes()));
                examine(&spoil::bytes(seed.as_bytes(), &mut random));
            }
        }
    }
}

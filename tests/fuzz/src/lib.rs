//! Fuzzing of parsers of untrusted input.
//!
//! * `targets`: a parser and its laws in each file
//! * `seeds`: valid input
//!
//! `cargo test` examines seeds and `regressions`; `make fuzz` draws inputs by coverage (`bin/guided.rs`).

mod seeds;
mod targets;

use std::collections::BTreeSet;
use std::path::Path;

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
    use super::*;

    fn regressions(target: &Target) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target.name);
        let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
        files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }

    /// Sequential, because the memory of a template is measured for the whole process.
    #[test]
    fn seeds_and_regressions_obey_the_laws() {
        for target in &TARGETS {
            let seeds = (target.seeds)().into_iter().map(String::into_bytes);
            for input in seeds.chain(regressions(target)) {
                println!("{}: {}", target.name, String::from_utf8_lossy(&input));
                (target.examine)(&input);
            }
        }
    }
}

//! Circumstances of a measurement: the head of the page.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::machine;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Circumstances {
    /// Command that repeats the measurement.
    pub(crate) command: String,
    /// Commit of this repository.
    pub(crate) commit: String,
    /// Git's hash of the folder `bench`. `scripts/release measured` refuses results of other sources.
    pub(crate) sources: String,
    pub(crate) date: String,
    /// Build of the function, in words.
    pub(crate) build: String,
    /// See [`machine::in_words`].
    pub(crate) machine: String,
    /// Share of the machine's time that others used, before and after.
    pub(crate) busy: Vec<f64>,
    pub(crate) took_s: u64,
}

/// A measurement under way.
#[derive(Debug)]
pub(crate) struct Measuring {
    circumstances: Circumstances,
    begin: Instant,
}

impl Measuring {
    /// Begins a measurement, before the bench starts any process.
    pub(crate) async fn begin(command: String, binary: &Path) -> Self {
        let circumstances = Circumstances {
            command,
            commit: commit(),
            sources: git(&["rev-parse", "--short=12", "HEAD:bench"]).unwrap_or_default(),
            date: Timestamp::now().strftime("%Y-%m-%d").to_string(),
            build: build(binary),
            machine: machine::in_words(),
            busy: machine::busy().await.into_iter().collect(),
            took_s: 0,
        };
        Self { circumstances, begin: Instant::now() }
    }

    /// Ends the measurement, after the last process of the bench.
    pub(crate) async fn end(mut self) -> Circumstances {
        self.circumstances.took_s = self.begin.elapsed().as_secs();
        self.circumstances.busy.extend(machine::busy().await);
        self.circumstances
    }
}

impl Circumstances {
    /// Date, machine and noise, in one line.
    pub(crate) fn in_words(&self) -> String {
        let Self { date, machine, busy, took_s, .. } = self;
        let quiet = machine::quiet_in_words(busy);
        format!("{date}, in {} min {} s, on {machine}; {quiet}", took_s / 60, took_s % 60)
    }
}

/// A file of this crate: the program runs where it was built.
pub(crate) fn own_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Commit under measurement, with a mark if the work tree differs. The pages themselves do not count.
fn commit() -> String {
    let changed = git(&["status", "--porcelain", "--", ".", ":!docs", ":!README.md"]);
    match (git(&["rev-parse", "--short=12", "HEAD"]), changed.as_deref()) {
        (Some(commit), Some("")) => format!("commit {commit}"),
        (Some(commit), _) => format!("commit {commit} **with changes**"),
        (None, _) => "an unknown commit".to_owned(),
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(own_file("..")).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Build of the product, in words, without the machine's own folders.
fn build(binary: &Path) -> String {
    let has = |name: &str| binary.components().any(|part| part.as_os_str() == name);
    if has(".aws-sam") {
        "the release build that `sam build` makes".to_owned()
    } else if has("debug") {
        "a **dev build**, which is not what is deployed".to_owned()
    } else {
        "a build that `SPILLWAY_DRAIN` named".to_owned()
    }
}

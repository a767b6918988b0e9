//! Under which circumstances something was measured: what stands at the head of every page.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::machine::{self, Machine};
use super::{build, micros, own_file};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Circumstances {
    /// What a person types to measure it again, with every number that it depends on.
    pub(crate) command: String,
    /// Of this repository.
    pub(crate) commit: String,
    pub(crate) date: String,
    /// Which build of the function.
    pub(crate) build: String,
    pub(crate) machine: Machine,
    /// Which part of the machine's time others used, before and after; empty when that is not known.
    pub(crate) busy: Vec<f64>,
    #[serde(rename = "took_us", with = "micros")]
    pub(crate) took: Duration,
}

impl Circumstances {
    /// The circumstances of a measurement that begins: before anything of ours runs.
    pub(crate) async fn look(command: String, binary: &Path) -> Measuring {
        let circumstances = Self {
            command,
            commit: commit(),
            date: Timestamp::now().strftime("%Y-%m-%d").to_string(),
            build: build::in_words(binary),
            machine: Machine::look(),
            busy: machine::busy().await.into_iter().collect(),
            took: Duration::ZERO,
        };
        Measuring { circumstances, begin: Instant::now() }
    }

    /// The begin of a page: its title, where it comes from, and the circumstances as a list.
    pub(crate) fn head(&self, title: &str, file: &str) -> String {
        let Self { command, commit, date, build, machine, busy, took } = self;
        format!(
            "# {title}\n\
            \n\
            Written by `{command}` at {commit}; nothing here is typed by hand.\n\
            The raw results are beside it: [{file}.json]({file}.json).\n\
            \n\
            * {date}, in {minutes} min {seconds} s, on {machine}; {quiet}\n\
            * measured: {build}\n",
            minutes = took.as_secs() / 60,
            seconds = took.as_secs() % 60,
            machine = machine.in_words(),
            quiet = machine::quiet_in_words(busy),
        )
    }
}

/// A measurement that is under way.
#[derive(Debug)]
pub(crate) struct Measuring {
    circumstances: Circumstances,
    begin: Instant,
}

impl Measuring {
    /// The circumstances, when nothing of ours runs any more.
    pub(crate) async fn over(mut self) -> Circumstances {
        self.circumstances.took = self.begin.elapsed();
        self.circumstances.busy.extend(machine::busy().await);
        self.circumstances
    }
}

/// The commit that is measured, and whether there is more than that. The pages themselves do not count.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(own_file("..")).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain", "--", ".", ":!docs"]);
    match (git(&["rev-parse", "--short=12", "HEAD"]), changed.as_deref()) {
        (Some(commit), Some("")) => format!("commit {commit}"),
        (Some(commit), _) => format!("commit {commit} **with changes**"),
        (None, _) => "a commit that is not known".to_owned(),
    }
}

//! What came of all runs: what is kept, and what the page is rendered from.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::case::{Case, Tool};
use super::figures::Figures;
use crate::measure::circumstances::Circumstances;
use crate::measure::machine::Rests;
use crate::measure::micros;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PeersResults {
    pub(super) circumstances: Circumstances,
    pub(super) rests: Rests,
    pub(super) runs: Vec<Run>,
    pub(super) failed: Vec<Failed>,
    /// Its version.
    pub(super) kubectl: String,
    /// The release that `scripts/peers` builds.
    pub(super) nth: String,
    /// What was not to be measured on this machine, with the reason.
    pub(super) unmeasured: Vec<String>,
}

/// One drain of one case by one tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) case: Case,
    /// The round trip that was added.
    #[serde(rename = "distance_us", with = "micros")]
    pub(super) distance: Duration,
    /// The drains of one round follow one another.
    pub(super) round: usize,
    pub(super) tool: Tool,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

/// A drain that did not come to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) case: Case,
    #[serde(rename = "distance_us", with = "micros")]
    pub(super) distance: Duration,
    pub(super) round: usize,
    pub(super) tool: Tool,
    pub(super) why: String,
}

impl PeersResults {
    pub(super) fn of(&self, case: Case, distance: Duration, tool: Tool) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.case == case && run.distance == distance && run.tool == tool)
    }

    /// How many of Spillway's drains of some cases failed.
    pub(super) fn failed_of(&self, is_meant: impl Fn(Case, Duration) -> bool) -> usize {
        let ours = self.failed.iter().filter(|failed| failed.tool == Tool::Spillway);
        ours.filter(|failed| is_meant(failed.case, failed.distance)).count()
    }
}

impl Run {
    /// Requests that name a pod, for each pod.
    pub(super) fn requests_a_pod(&self) -> f64 {
        ratio(self.figures.for_pods, self.case.nodes() * self.case.pods())
    }

    /// All other requests, for each node.
    pub(super) fn requests_a_node(&self) -> f64 {
        ratio(self.figures.beside, self.case.nodes())
    }

    /// Of the largest process.
    #[expect(clippy::cast_precision_loss, reason = "a process has fewer bytes than would lose one")]
    pub(super) fn peak_mib(&self) -> f64 {
        self.figures.peak_memory as f64 / 1024.0 / 1024.0
    }
}

#[expect(clippy::cast_precision_loss, reason = "a drain has fewer requests than would lose one")]
fn ratio(count: usize, of: usize) -> f64 {
    count as f64 / of as f64
}

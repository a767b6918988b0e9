//! What came of all runs.

use std::time::Duration;

use super::case::{Case, Tool};
use super::figures::Figures;
use crate::measure::machine::Rests;

#[derive(Debug, Default)]
pub(super) struct Results {
    /// Which part of the machine's time others used, before and after; empty when that is not known.
    pub(super) busy: Vec<f64>,
    pub(super) rests: Rests,
    pub(super) runs: Vec<Run>,
    /// Its version.
    pub(super) kubectl: String,
    /// What was to be measured and was not, with the reason.
    pub(super) unmeasured: Vec<String>,
}

/// One drain of one case by one tool.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) case: Case,
    /// The round trip that was added.
    pub(super) distance: Duration,
    /// Those of one round follow one another.
    pub(super) round: usize,
    pub(super) tool: Tool,
    pub(super) figures: Figures,
}

impl Results {
    pub(super) fn of(&self, case: Case, distance: Duration, tool: Tool) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.case == case && run.distance == distance && run.tool == tool)
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

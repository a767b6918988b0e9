//! What is drained, and by whom: every case and every tool.

use std::time::Duration;

use clap::ValueEnum;

use super::{FAR, NEAR};

/// The nodes that go at once, and what is on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Case {
    #[value(name = "1x20")]
    SmallNode,
    #[value(name = "1x110")]
    FullNode,
    #[value(name = "10x20")]
    TenNodes,
    #[value(name = "50x20")]
    FiftyNodes,
    /// A `PodDisruptionBudget` lets one pod go at a time.
    #[value(name = "budget")]
    Budget,
}

impl Case {
    pub(super) fn nodes(self) -> usize {
        match self {
            Self::SmallNode | Self::FullNode | Self::Budget => 1,
            Self::TenNodes => 10,
            Self::FiftyNodes => 50,
        }
    }

    /// On each node.
    pub(super) fn pods(self) -> usize {
        match self {
            Self::FullNode => 110,
            Self::SmallNode | Self::TenNodes | Self::FiftyNodes | Self::Budget => 20,
        }
    }

    /// Given that the smallest case is run so often. The others take a peer minutes.
    pub(super) fn runs(self, of_the_smallest: usize) -> usize {
        match self {
            Self::SmallNode => of_the_smallest,
            Self::FullNode => of_the_smallest.div_ceil(2),
            Self::TenNodes | Self::FiftyNodes | Self::Budget => 1,
        }
    }

    /// The round trips that are added. What takes a peer minutes takes as long from near.
    pub(super) fn distances(self) -> &'static [Duration] {
        match self {
            Self::SmallNode | Self::FullNode | Self::TenNodes => &[NEAR, FAR],
            Self::FiftyNodes | Self::Budget => &[FAR],
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::SmallNode => "1 node × 20 pods",
            Self::FullNode => "1 node × 110 pods",
            Self::TenNodes => "10 nodes × 20 pods",
            Self::FiftyNodes => "50 nodes × 20 pods",
            Self::Budget => "1 node × 20 pods behind `maxUnavailable: 1`",
        }
    }
}

/// Who drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Tool {
    Spillway,
    Kubectl,
    /// As its chart installs it.
    Nth,
    /// With a worker for each node: all that the release can be tuned.
    NthWorkers,
    /// With a worker for each node and a client that is hardly limited: a later build.
    NthTuned,
    /// Nobody: the evictions alone.
    Floor,
}

impl Tool {
    pub(super) fn is_nth(self) -> bool {
        matches!(self, Self::Nth | Self::NthWorkers | Self::NthTuned)
    }

    /// One node needs one worker; and a pod that a budget holds has to be asked for again.
    pub(super) fn takes(self, case: Case) -> bool {
        match self {
            Self::NthWorkers => case.nodes() > 1,
            Self::Floor => case != Case::Budget,
            Self::Spillway | Self::Kubectl | Self::Nth | Self::NthTuned => true,
        }
    }

    /// What NTH is told beside its queue.
    pub(super) fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Spillway | Self::Kubectl | Self::Nth | Self::Floor => &[],
            Self::NthWorkers => &[("WORKERS", "50")],
            Self::NthTuned => &[("WORKERS", "50"), ("KUBE_API_QPS", "200"), ("KUBE_API_BURST", "400")],
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Spillway => "Spillway",
            Self::Kubectl => "`kubectl drain`",
            Self::Nth => "NTH",
            Self::NthWorkers => "NTH, 50 workers",
            Self::NthTuned => "NTH, tuned",
            Self::Floor => "the evictions alone",
        }
    }
}

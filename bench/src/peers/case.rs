//! What is drained, and by whom: every case and every tool.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use spillway_bed::WorldOptions;

use super::{FAR, NEAR};
use crate::measure;

/// The nodes that go at once, and what is on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Case {
    #[value(name = "1x20")]
    SmallNode,
    #[value(name = "1x110")]
    FullNode,
    /// Pods that take [`EXIT_AFTER`] to exit, as those do that finish what they are at.
    #[value(name = "1x110-slow")]
    FullNodeSlowPods,
    /// In a world in which nothing helps a tool whose requests come in a burst.
    #[value(name = "1x110-plain")]
    FullNodePlainWorld,
    #[value(name = "10x20")]
    TenNodes,
    #[value(name = "50x20")]
    FiftyNodes,
    /// Pods that take [`EXIT_AFTER`] to exit.
    #[value(name = "50x20-slow")]
    FiftyNodesSlowPods,
    /// With `deploy/optional/flow-control.yaml`.
    #[value(name = "50x20-flow-control")]
    FiftyNodesFlowControl,
    /// A `PodDisruptionBudget` lets one pod go at a time; the next as soon as its replacement is Ready, which it is at once.
    #[value(name = "budget")]
    Budget,
    /// A `PodDisruptionBudget` lets one pod go at a time, and a replacement takes [`READY_AFTER`] to become Ready.
    #[value(name = "slow-budget")]
    SlowBudget,
}

/// How long a pod takes to exit, where it takes its time.
pub(super) const EXIT_AFTER: Duration = Duration::from_secs(5);

/// How long a replacement takes to become Ready, where it takes its time.
pub(super) const READY_AFTER: Duration = Duration::from_secs(1);

impl Case {
    pub(super) fn nodes(self) -> usize {
        match self {
            Self::SmallNode
            | Self::FullNode
            | Self::FullNodeSlowPods
            | Self::FullNodePlainWorld
            | Self::Budget
            | Self::SlowBudget => 1,
            Self::TenNodes => 10,
            Self::FiftyNodes | Self::FiftyNodesSlowPods | Self::FiftyNodesFlowControl => 50,
        }
    }

    /// On each node.
    pub(super) fn pods(self) -> usize {
        match self {
            Self::FullNode | Self::FullNodeSlowPods | Self::FullNodePlainWorld => 110,
            Self::SmallNode
            | Self::TenNodes
            | Self::FiftyNodes
            | Self::FiftyNodesSlowPods
            | Self::FiftyNodesFlowControl
            | Self::Budget
            | Self::SlowBudget => 20,
        }
    }

    /// How often a tool drains it, given that everybody drains the smallest case so often: fixed before the first drain. What
    /// a requirement is about is drained three times as often: six rounds are the fewest that decide one. On a full node the clocks of NTH, tuned,
    /// spread its second by half, and only many rounds tell the two apart, with pods that take their time too. So it is
    /// behind a budget, where chance says how many of its pauses of five seconds a peer needs, and with fifty nodes, where
    /// it spreads our seconds. What takes a peer minutes and is no requirement's is drained once.
    pub(super) fn runs(self, of_the_smallest: usize, tool: Tool, distance: Duration) -> usize {
        match (self, tool) {
            (Self::FullNode, Tool::Spillway | Tool::NthTuned) if distance == FAR => of_the_smallest * 30,
            (Self::FullNode, Tool::Baseline) if distance == FAR => of_the_smallest * 10,
            (Self::FullNode, _) if distance == FAR => of_the_smallest * 3,
            (Self::FullNodeSlowPods, Tool::Baseline) => of_the_smallest * 5,
            (Self::FullNodeSlowPods, _) => of_the_smallest * 15,
            (Self::FiftyNodes, Tool::Spillway | Tool::NthTuned) | (Self::Budget, _) => of_the_smallest * 6,
            (Self::FiftyNodesSlowPods | Self::FiftyNodesFlowControl | Self::FullNodePlainWorld, _) => {
                of_the_smallest * 3
            }
            (Self::SmallNode, _) => of_the_smallest,
            (Self::FullNode, _) => of_the_smallest.div_ceil(2),
            (Self::TenNodes | Self::FiftyNodes | Self::SlowBudget, _) => 1,
        }
    }

    /// The round trips that are added. What takes a peer minutes takes as long from near.
    pub(super) fn distances(self) -> &'static [Duration] {
        match self {
            Self::SmallNode | Self::FullNode | Self::TenNodes => &[NEAR, FAR],
            Self::FullNodeSlowPods
            | Self::FullNodePlainWorld
            | Self::FiftyNodes
            | Self::FiftyNodesSlowPods
            | Self::FiftyNodesFlowControl
            | Self::Budget
            | Self::SlowBudget => &[FAR],
        }
    }

    /// The world in which it is measured.
    pub(super) fn world_options(self) -> WorldOptions {
        match self {
            Self::FullNodePlainWorld => measure::plain_world_options(),
            Self::FiftyNodesFlowControl => WorldOptions { flow_control: true, ..measure::world_options() },
            _ => measure::world_options(),
        }
    }

    /// Whether the API server is made to collect its garbage before each drain.
    pub(super) fn begins_without_garbage(self) -> bool {
        self != Self::FullNodePlainWorld
    }

    pub(super) fn pods_take_their_time(self) -> bool {
        matches!(self, Self::FullNodeSlowPods | Self::FiftyNodesSlowPods)
    }

    pub(super) fn has_a_budget(self) -> bool {
        matches!(self, Self::Budget | Self::SlowBudget)
    }

    /// Whether another case is drained in another world to see what the world does.
    fn is_a_variant(self) -> bool {
        matches!(self, Self::FullNodePlainWorld | Self::FiftyNodesFlowControl)
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::SmallNode => "1 node × 20 pods",
            Self::FullNode => "1 node × 110 pods",
            Self::FullNodeSlowPods => "1 node × 110 pods that take 5 s to exit",
            Self::FullNodePlainWorld => "1 node × 110 pods, where nothing helps a burst",
            Self::TenNodes => "10 nodes × 20 pods",
            Self::FiftyNodes => "50 nodes × 20 pods",
            Self::FiftyNodesSlowPods => "50 nodes × 20 pods that take 5 s to exit",
            Self::FiftyNodesFlowControl => "50 nodes × 20 pods, with `deploy/optional/flow-control.yaml`",
            Self::Budget => "1 node × 20 pods behind `maxUnavailable: 1`",
            Self::SlowBudget => "1 node × 20 pods behind `maxUnavailable: 1`, a replacement Ready after 1 s",
        }
    }
}

/// Who drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    Baseline,
}

impl Tool {
    pub(super) fn is_nth(self) -> bool {
        matches!(self, Self::Nth | Self::NthWorkers | Self::NthTuned)
    }

    /// One node needs one worker; pods that take their time are for those who do not need minutes anyway. The evictions
    /// alone: a pod that a budget holds has to be asked for again, and so has what the API server turns away, a part of one
    /// user's thousand requests at once.
    pub(super) fn takes(self, case: Case) -> bool {
        match self {
            Self::NthWorkers => matches!(case, Case::TenNodes | Case::FiftyNodes),
            Self::Baseline => !case.has_a_budget() && case.nodes() < 50,
            Self::Kubectl | Self::Nth => !case.pods_take_their_time() && !case.is_a_variant(),
            // Nobody else has a level in it.
            Self::NthTuned => case != Case::FiftyNodesFlowControl,
            Self::Spillway => true,
        }
    }

    /// As an option names it.
    pub(super) fn in_option(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What NTH is told beside its queue.
    pub(super) fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Spillway | Self::Kubectl | Self::Nth | Self::Baseline => &[],
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
            Self::Baseline => "the evictions alone",
        }
    }
}

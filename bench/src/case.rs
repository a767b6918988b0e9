//! Cases: how many nodes get a notice at once, how many pods each has, and who drains them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Nodes that go at once, and the pods of each, such as `50x20`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Case {
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
    /// One part in so many of AWS' quotas.
    pub(crate) part: usize,
}

/// Fewest nodes of a storm: more than EC2's quotas serve at once.
pub(crate) const STORM: usize = 150;
/// A part of a storm that the processors of a small machine can serve as fast as AWS would.
const PART: usize = 10;

impl Case {
    pub(crate) const fn new(nodes: usize, pods: usize) -> Self {
        Self { nodes, pods, part: 1 }
    }

    /// A tenth of a storm, with a tenth of AWS' quotas: a function waits for the quotas as long as in the whole storm.
    pub(crate) fn tenth(self) -> Option<Self> {
        (self.nodes >= STORM).then_some(Self { nodes: self.nodes / PART, part: PART, ..self })
    }

    /// Rounds of the case. The node of 110 pods gets all: its times spread by half from round to round. Above 150 nodes, a round
    /// takes minutes, and counts decide.
    pub(crate) fn rounds(self, runs: usize) -> usize {
        match self {
            FULL_NODE => runs,
            Self { nodes: ..=150, .. } => runs.div_ceil(2),
            Self { .. } => runs.div_ceil(12),
        }
    }

    pub(crate) fn in_words(self) -> String {
        let Self { nodes, pods, part } = self;
        let quotas = if part == 1 { String::new() } else { format!(" with 1/{part} of the quotas") };
        format!("{nodes} {} × {pods} pods{quotas}", if nodes == 1 { "node" } else { "nodes" })
    }
}

/// As many pods as a node usually takes.
pub(crate) const FULL_NODE: Case = Case::new(1, 110);
/// More pods than most nodes may have.
pub(crate) const LARGE_NODE: Case = Case::new(1, 300);
pub(crate) const FIFTY_NODES: Case = Case::new(50, 20);
/// Cases without `CASES=`. The page is kept only if all of them were measured.
pub(crate) const DEFAULT: [Case; 4] = [FULL_NODE, LARGE_NODE, FIFTY_NODES, Case::new(150, 2)];

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (size, part) = text.split_once('/').unwrap_or((text, "1"));
        let sizes = size.split_once('x').and_then(|(nodes, pods)| Some((nodes.parse().ok()?, pods.parse().ok()?)));
        match (sizes, part.parse()) {
            (Some((nodes @ 1.., pods @ 1..)), Ok(part @ 1..)) => Ok(Self { nodes, pods, part }),
            _ => Err(format!("{text} is no case: a case is nodes x pods, such as 150x2")),
        }
    }
}

impl TryFrom<String> for Case {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Case> for String {
    fn from(case: Case) -> Self {
        case.to_string()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.nodes, self.pods)?;
        if self.part == 1 { Ok(()) } else { write!(f, "/{}", self.part) }
    }
}

/// Program that drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tool {
    Spillway,
    /// The drain function that `BEFORE=` named.
    Before,
    /// aws-node-termination-handler.
    Nth,
    /// A bare loop of evictions. It is no drain: a drain has to do as much, and more.
    Baseline,
}

impl Tool {
    pub(crate) const ALL: [Self; 4] = [Self::Spillway, Self::Before, Self::Nth, Self::Baseline];

    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Spillway => "Spillway",
            Self::Before => "BEFORE",
            Self::Nth => "NTH",
            Self::Baseline => "the evictions alone",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_nodes_and_pods() {
        let case = Case::new(150, 15);
        let tenth = case.tenth().expect("a storm");
        for (case, text) in [(case, "150x15"), (tenth, "15x15/10")] {
            assert_eq!((case.to_string().as_str(), text.parse()), (text, Ok(case)));
        }
        for wrong in ["150", "x2", "0x2", "2x0", "2x-1", "2x2/0", "a"] {
            assert!(wrong.parse::<Case>().is_err(), "{wrong}");
        }
    }
}

//! What came of all storms: what is kept, and what the page is rendered from.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::case::Tool;
use super::super::figures::Figures;
use crate::measure::circumstances::Circumstances;

/// How many nodes get a notice at once, and how many pods each has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Size {
    pub(super) nodes: usize,
    pub(super) pods: usize,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('x').and_then(|(nodes, pods)| Some((nodes.parse().ok()?, pods.parse().ok()?)));
        match parts {
            Some((nodes @ 1.., pods)) => Ok(Self { nodes, pods }),
            _ => Err(format!("{text} is no size: it is nodes x pods, such as 150x15")),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.nodes, self.pods)
    }
}

/// How many calls are allowed at once, and how many more each second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bucket {
    pub(super) most: u32,
    pub(super) per_second: u32,
}

impl FromStr for Bucket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('+').and_then(|(most, more)| Some((most.parse().ok()?, more.parse().ok()?)));
        let (most, per_second) = parts.ok_or_else(|| format!("{text} is no limit: it is such as 100+20"))?;
        Ok(Self { most, per_second })
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.most, self.per_second)
    }
}

impl Bucket {
    /// How long it holds up the last of so many calls that come at once.
    pub(super) fn takes(self, calls: usize) -> Duration {
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        Duration::from_secs(calls.saturating_sub(self.most).into()) / self.per_second
    }
}

/// What AWS allows the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Limits {
    /// Of Lambda, at a time.
    pub(super) executions: usize,
    /// Of EC2, calls of `DescribeInstances`.
    pub(super) ec2: Bucket,
}

/// Calls of one action.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Calls {
    pub(super) made: usize,
    pub(super) throttled: usize,
}

/// One storm of one tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) size: Size,
    pub(super) tool: Tool,
    /// Only of Spillway.
    pub(super) limits: Option<Limits>,
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) ec2: Calls,
    pub(super) eks: Calls,
    /// Requests that the API server answered with 429.
    pub(super) throttled_by_api_server: usize,
    /// Notices that did not end in a drained node.
    pub(super) failed: usize,
}

/// A storm that a tool did not end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) size: Size,
    pub(super) tool: Tool,
    pub(super) limits: Option<Limits>,
    pub(super) why: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StormResults {
    pub(super) circumstances: Circumstances,
    pub(super) runs: Vec<Run>,
    pub(super) failed: Vec<Failed>,
    /// The release that `scripts/peers` builds.
    pub(super) nth: String,
    /// What was not to be measured on this machine, with the reason.
    pub(super) unmeasured: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_nodes_and_pods() {
        let size = Size { nodes: 150, pods: 15 };
        assert_eq!((size.to_string().as_str(), "150x15".parse()), ("150x15", Ok(size)));
        let bucket = Bucket { most: 100, per_second: 20 };
        assert_eq!((bucket.to_string().as_str(), "100+20".parse()), ("100+20", Ok(bucket)));
        assert_eq!((bucket.takes(80), bucket.takes(150)), (Duration::ZERO, Duration::from_millis(2500)));
        for wrong in ["150", "x2", "0x2", "2x-1", "a"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}

//! What came of all runs: what is kept, and what the page is rendered from.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::baseline::Baseline;
use super::drain::{Drain, Evictions};
use super::size::Size;
use super::starts::Starts;
use crate::measure::circumstances::Circumstances;
use crate::measure::machine::Rests;
use crate::measure::micros;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BenchResults {
    pub(super) circumstances: Circumstances,
    pub(super) rests: Rests,
    pub(super) size: Size,
    pub(super) starts: Vec<Starts>,
    pub(super) rounds: Vec<Round>,
    pub(super) claims: Vec<Claims>,
    /// The drains that failed, and how. Their rounds are not among the others.
    pub(super) failed: Vec<String>,
}

/// Near and far, one after the other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Round {
    pub(super) near: Turn,
    pub(super) far: Turn,
    /// Far, with the share of a processor that Lambda gives the function; none where nothing can be limited.
    pub(super) at_share: Option<Drain>,
}

/// A full node drained, and another one emptied by the baseline.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) drain: Drain,
    pub(super) baseline: Baseline,
}

/// The way to the claim, far away.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Claims {
    /// From the execution of the binary.
    #[serde(rename = "cold_us", with = "micros")]
    pub(super) cold: Duration,
    /// From the notice.
    #[serde(rename = "warm_us", with = "micros")]
    pub(super) warm: Duration,
}

impl Round {
    /// What the added round trip adds from the notice to the last answer, in milliseconds. Noise can
    /// make it negative.
    pub(super) fn far_costs_ms(&self) -> f64 {
        let to_last = |turn: &Turn| turn.drain.evicted().to_last_answer.as_secs_f64() * 1e3;
        to_last(&self.far) - to_last(&self.near)
    }
}

impl Turn {
    /// From the notice to the last answer, as a multiple of the baseline: both have to connect.
    pub(super) fn against_baseline(&self) -> f64 {
        self.drain.evicted().to_last_answer.as_secs_f64() / self.baseline.with_connection.as_secs_f64()
    }

    /// From the notice to the last answer, as a multiple of a baseline that had been connected before.
    pub(super) fn against_connected_baseline(&self) -> f64 {
        self.drain.evicted().to_last_answer.as_secs_f64() / self.baseline.evictions.as_secs_f64()
    }

    /// From the claim to the last answer, as a multiple of a baseline that had been connected before: both are then.
    pub(super) fn claim_against_connected_baseline(&self) -> f64 {
        self.drain.since_claim().as_secs_f64() / self.baseline.evictions.as_secs_f64()
    }
}

impl Drain {
    pub(super) fn evicted(&self) -> Evictions {
        self.evictions.expect("every node of a round has pods")
    }

    /// From the claim to the last answer.
    pub(super) fn since_claim(&self) -> Duration {
        self.evicted().to_last_answer.saturating_sub(self.to_claim)
    }

    /// How often a service was called.
    pub(super) fn calls_of(&self, service: &str) -> usize {
        self.calls.get(service).copied().unwrap_or(0)
    }
}

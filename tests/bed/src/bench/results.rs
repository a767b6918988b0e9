//! What came of all runs.

use std::time::Duration;

use super::drain::{Drain, Evictions};
use super::floor::Floor;
use super::size::Size;
use super::starts::Starts;
use crate::measure::machine::Rests;

#[derive(Debug)]
pub(super) struct Results {
    /// Which part of the machine's time others used, before and after; empty when that is not known.
    pub(super) busy: Vec<f64>,
    pub(super) rests: Rests,
    pub(super) size: Size,
    pub(super) starts: Vec<Starts>,
    pub(super) rounds: Vec<Round>,
    pub(super) claims: Vec<Claims>,
}

/// Near and far, one after the other.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) near: Turn,
    pub(super) far: Turn,
}

/// A full node drained, and another one emptied by the floor.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) drain: Drain,
    pub(super) floor: Floor,
}

/// The way to the claim, far away.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claims {
    /// From the execution of the binary.
    pub(super) cold: Duration,
    /// From the notice.
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
    /// From the notice to the last answer, as a multiple of the floor: both have to connect.
    pub(super) fn against_the_floor(&self) -> f64 {
        self.drain.evicted().to_last_answer.as_secs_f64() / self.floor.with_connection.as_secs_f64()
    }

    /// The same, had the floor been connected before.
    pub(super) fn against_a_connected_floor(&self) -> f64 {
        self.drain.evicted().to_last_answer.as_secs_f64() / self.floor.evictions.as_secs_f64()
    }

    /// From the claim to the last answer, as a multiple of such a floor: both are connected then.
    pub(super) fn claim_against_a_connected_floor(&self) -> f64 {
        self.drain.since_claim().as_secs_f64() / self.floor.evictions.as_secs_f64()
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
        self.calls.iter().filter(|call| call.service == service).count()
    }

    /// The first three requests to the API server, in the order in which it received them.
    pub(super) fn opening(&self) -> Vec<String> {
        let words = |request: &crate::audit::Request| {
            let slash = if request.subresource.is_empty() { "" } else { "/" };
            format!("{} {}{slash}{}", request.verb, request.resource, request.subresource)
        };
        self.requests.iter().take(3).map(words).collect()
    }
}

//! Latency and faults of requests to the API server and to AWS.

use std::time::Duration;

use crate::dice::Dice;
use crate::plan::{Fault, Outage, Plan, Side};

#[derive(Debug)]
pub(crate) struct Network {
    dice: Dice,
}

/// Latencies of a request and its answer, and a fault.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) there: Duration,
    pub(crate) back: Duration,
    pub(crate) fault: Option<Fault>,
}

impl Network {
    pub(crate) fn of(seed: u64) -> Self {
        Self { dice: Dice::of(seed, "network") }
    }

    pub(crate) fn route(
        &mut self,
        (side, cluster): (Side, Option<usize>),
        request: &str,
        plan: &Plan,
        elapsed: Duration,
    ) -> Route {
        let is_affected = |outage: &&Outage| {
            let changes_node = request.starts_with("Patch") && request.contains("/nodes/");
            outage.side == side
                && (outage.cluster.is_none() || outage.cluster == cluster)
                && (outage.from..outage.until).contains(&elapsed)
                && (outage.fault != Fault::Webhook || changes_node)
                && request.contains(&outage.only)
        };
        let outage = plan.outages.iter().find(is_affected);
        let fault = outage.filter(|outage| self.dice.perhaps(outage.of_a_thousand)).map(|outage| outage.fault);
        let slow = if fault == Some(Fault::Slow) { self.dice.ms(1000..14_000) } else { Duration::ZERO };
        Route { there: self.dice.ms(1..40), back: self.dice.ms(1..40) + slow, fault }
    }

    /// Draws one of several forms of a fault.
    pub(crate) fn variant(&mut self, of: usize) -> usize {
        self.dice.below(of)
    }
}

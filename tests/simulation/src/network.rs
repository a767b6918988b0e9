//! The way of a request, to the API server or to AWS, and of its answer: how long they take, and what goes wrong.

use std::future::pending;
use std::time::Duration;

use tokio::time::sleep;

use crate::dice::Dice;
use crate::lambda::AttemptId;
use crate::plan::{Fault, Plan, Side};
use crate::simulation::{Shared, Simulation};

/// What is between the function and everybody else.
#[derive(Debug)]
pub(crate) struct Network {
    dice: Dice,
    /// How many requests went to the API server, and to AWS.
    pub(crate) requests: [usize; 2],
}

/// How a request and its answer go.
#[derive(Debug)]
pub(crate) struct Route {
    there: Duration,
    back: Duration,
    pub(crate) fault: Option<Fault>,
}

impl Network {
    pub(crate) fn of(seed: u64) -> Self {
        Self { dice: Dice::of(seed, "network"), requests: [0; 2] }
    }

    /// How a request goes that is made now.
    pub(crate) fn route(&mut self, side: Side, plan: &Plan, elapsed: Duration) -> Route {
        self.requests[side as usize] += 1;
        let outage =
            plan.outages.iter().find(|outage| outage.side == side && (outage.from..outage.until).contains(&elapsed));
        let fault = outage.filter(|outage| self.dice.perhaps(outage.of_a_thousand)).map(|outage| outage.fault);
        let slow = if fault == Some(Fault::Slow) { self.dice.ms(1000..14_000) } else { Duration::ZERO };
        Route { there: self.dice.ms(1..40), back: self.dice.ms(1..40) + slow, fault }
    }

    /// Which of so many things is in the way of a request.
    pub(crate) fn obstacle(&mut self, of: usize) -> usize {
        self.dice.below(of)
    }
}

/// Has a request arrive, be answered, and its answer come back; unless something goes wrong, or the attempt is killed.
pub(crate) async fn pass<A>(
    simulation: &Shared,
    side: Side,
    by: AttemptId,
    request: &str,
    answer: impl FnOnce(&mut Simulation) -> A,
) -> Result<A, Fault> {
    let Route { there, back, fault } = simulation.lock().route(side, by, request);
    sleep(there).await;
    if fault == Some(Fault::RequestLost) {
        return Err(Fault::RequestLost);
    }
    let (answer, is_killed) = {
        let mut inside = simulation.lock();
        let is_refused = matches!(fault, Some(Fault::Refused | Fault::Unauthorized));
        ((!is_refused).then(|| answer(&mut inside)), inside.lambda.made_request(by))
    };
    if is_killed || fault == Some(Fault::Hangs) {
        return pending().await;
    }
    sleep(back).await;
    match (answer, fault) {
        (_, Some(fault @ (Fault::AnswerLost | Fault::Unauthorized))) => Err(fault),
        (answer, _) => answer.ok_or(Fault::Refused),
    }
}

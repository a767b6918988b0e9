//! Many invocations, many faults, much time: the real handler on virtual time, against a cluster and an AWS in memory.
//!
//! A seed draws what there is and what happens; witnesses hold invariants against all that the function does there. One seed
//! has one history. A seed that fails is printed with its history:
//!
//! ```sh
//! SEED=17 cargo test --workspace --lib whatever_happens -- --nocapture  # one seed, with its history
//! SEEDS=100000 FROM=600 cargo test --workspace --lib whatever_happens   # so many, from there on
//! ```
//!
//! * `plan`: from a seed to what happens
//! * `clock`, `dice`: time, and what is drawn as it happens
//! * `event`, `fact`: what happens, what follows from it, what has happened
//! * `cluster`, `aws`, `lambda`, `people`: the components; none reaches into another
//! * `network`: how long a request takes, and what goes wrong
//! * `witness`: what must hold
//! * `history`: what happened, to be read
//! * `simulation`: the queue of events, which ties these together
//! * `function`: the function at work, and the ways of its requests
//! * `story`, `stories`: given plans instead of drawn ones, and what follows from each

//  The futures of the drainer are nested more deeply than 128.
#![recursion_limit = "256"]

mod aws;
mod clock;
mod cluster;
mod dice;
mod event;
mod fact;
mod function;
mod history;
mod lambda;
mod network;
mod people;
mod plan;
mod simulation;
mod witness;

use std::mem;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep_until;

use plan::Plan;
use simulation::Shared;
pub use witness::{Counts, EXCUSED, SOMETIMES};

/// What came of a seed.
#[derive(Debug)]
pub struct Ran {
    /// What must hold and did not.
    pub broken: Vec<String>,
    /// What happened, if it was recorded.
    pub history: String,
    /// How often each thing has happened.
    pub seen: Counts,
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, is_recorded: bool) -> Ran {
    run_plan(Plan::of(seed), seed, is_recorded)
}

/// The plan of a seed, as it is kept.
#[must_use]
pub fn plan_of(seed: u64) -> String {
    serde_json::to_string(&Kept { seed, plan: Plan::of(seed) }).expect("a plan is JSON")
}

/// Runs a plan that was kept: `{"seed": …, "plan": …}`, as the history of a seed begins.
///
/// # Errors
/// It cannot be read.
pub fn run_kept(text: &str, is_recorded: bool) -> Result<Ran, serde_json::Error> {
    let Kept { seed, plan } = serde_json::from_str(text)?;
    Ok(run_plan(plan, seed, is_recorded))
}

/// A plan, and the seed that draws how long things take.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    seed: u64,
    plan: Plan,
}

/// Runs a plan; the seed draws how long things take.
fn run_plan(plan: Plan, seed: u64, is_recorded: bool) -> Ran {
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without I/O needs nothing");
    runtime.block_on(LocalSet::new().run_until(live(plan, seed, is_recorded)))
}

async fn live(plan: Plan, seed: u64, is_recorded: bool) -> Ran {
    let kept = is_recorded.then(|| Kept { seed, plan: plan.clone() });
    let simulation = Shared::of(plan, seed, is_recorded);
    simulation.lock().history.note(|| serde_json::to_string(&kept).expect("a plan is JSON"));
    let processes = Rc::new(function::Processes::default());
    let news = simulation.lock().news.clone();
    simulation.lock().set_up();
    loop {
        for begun in simulation.lock().step() {
            spawn_local(function::work(simulation.clone(), Rc::clone(&processes), begun));
        }
        let Some(next) = simulation.lock().next() else { break };
        tokio::select! {
            biased;
            () = news.notified() => {}
            () = sleep_until(next) => {}
        }
    }
    let mut inside = simulation.lock();
    inside.end();
    let (verdict, history) = (mem::take(&mut inside.verdict), inside.history.text());
    Ran { broken: verdict.broken, history, seen: verdict.seen }
}

#[cfg(test)]
mod stories;
#[cfg(test)]
mod story;
#[cfg(test)]
mod tests;

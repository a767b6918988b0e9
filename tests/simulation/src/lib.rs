//! Simulation: the real handler on virtual time, against a cluster and an AWS in memory, with many faults.
//!
//! A seed draws a world and its events; witnesses check laws against all actions of the function. A seed has one history, which is
//! printed if the seed fails:
//!
//! ```sh
//! SEED=17 cargo test --workspace --lib worlds_obey_all_laws -- --nocapture  # one seed, with its history
//! SEEDS=100000 FROM=600 cargo test --workspace --lib worlds_obey_all_laws   # 100,000 seeds from 600 on
//! ```
//!
//! * `plan`: world and events of a seed
//! * `clock`, `dice`: virtual time, and random numbers during a simulation
//! * `event`, `fact`: events, effects, facts
//! * `cluster`, `aws`, `lambda`, `people`: components, independent of each other
//! * `network`: latency and faults of requests
//! * `witness`: laws
//! * `history`: facts as text
//! * `simulation`: queue of events between the components
//! * `function`: processes of the function, and their requests
//! * `story`, `stories`: given plans with expected lines

// The futures of the drainer are nested more deeply than 128.
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
#[cfg(test)]
mod stories;
#[cfg(test)]
mod story;
#[cfg(test)]
mod tests;
mod witness;

use std::mem;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep_until;

use plan::Plan;
use simulation::Shared;
pub use witness::Counts;

/// Result of a world.
#[derive(Debug)]
pub struct Outcome {
    pub violations: Vec<String>,
    /// Empty unless recorded.
    pub history: String,
    pub counts: Counts,
}

impl Outcome {
    /// Asserts that no law is broken.
    #[must_use]
    pub fn lawful(self, name: &str) -> Self {
        assert!(self.violations.is_empty(), "{}\n{name} breaks laws:\n{}", self.history, self.violations.join("\n"));
        self
    }
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, is_recorded: bool) -> Outcome {
    run_plan(Plan::of(seed), seed, is_recorded)
}

/// Returns the plan of a seed as JSON.
#[must_use]
pub fn plan_of(seed: u64) -> String {
    serde_json::to_string(&Kept { seed, plan: Plan::of(seed) }).expect("a plan is JSON")
}

/// Runs a kept plan, the first line of a history: `{"seed": …, "plan": …}`.
pub fn run_kept(text: &str, is_recorded: bool) -> Result<Outcome, serde_json::Error> {
    let Kept { seed, plan } = serde_json::from_str(text)?;
    Ok(run_plan(plan, seed, is_recorded))
}

/// A plan, and the seed of its durations.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    seed: u64,
    plan: Plan,
}

fn run_plan(plan: Plan, seed: u64, is_recorded: bool) -> Outcome {
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without I/O needs nothing");
    runtime.block_on(LocalSet::new().run_until(live(plan, seed, is_recorded)))
}

async fn live(plan: Plan, seed: u64, is_recorded: bool) -> Outcome {
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
    Outcome { violations: verdict.violations, history, counts: verdict.counts }
}

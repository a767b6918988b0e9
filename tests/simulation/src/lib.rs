//! Many invocations, many faults, much time: the real handler on virtual time, against an API server and an AWS in memory.
//!
//! A seed draws a world and what happens in it; invariants are held against all that the function does there. One seed has
//! one history. A seed that fails is printed with its history:
//!
//! ```sh
//! SEED=17 cargo test --workspace --lib whatever_happens -- --nocapture  # one seed, with its history
//! SEEDS=100000 FROM=600 cargo test --workspace --lib whatever_happens   # so many, from there on
//! ```
//!
//! * `draw`: from a seed to a plan
//! * `world`: what all share, its time, what happens later
//! * `network`: the way of a request and of its answer
//! * `api_server`, `controllers`: the cluster
//! * `aws`, `stories`: AWS, and what it does with instances
//! * `people`: what they do with nodes
//! * `lambda`: deliveries, attempts, kills
//! * `said`, `invariants`: what must hold
//! * `history`: what happened

mod api_server;
mod aws;
mod controllers;
mod draw;
mod history;
mod invariants;
mod lambda;
mod network;
mod people;
mod said;
mod stories;
mod world;

use std::sync::Arc;
use std::time::Duration;

use spillway_drainer::doubles::Function;
use spillway_settings::Settings;
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::timeout;

use draw::{Plan, Side};
use invariants::Invariant;
use world::Shared;

/// A world in which nothing more is on its way is looked at after so long.
const QUIET: Duration = Duration::from_secs(300);
/// No world is looked at for longer.
const LONGEST: Duration = Duration::from_hours(72);

/// What came of a seed.
#[derive(Debug)]
pub struct Ran {
    /// What must hold and did not.
    pub broken: Vec<String>,
    /// What happened, if it was recorded.
    pub history: String,
    /// How many invocations there were, and how many requests they made to the API server and to AWS.
    pub counts: [usize; 3],
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, is_recorded: bool) -> Ran {
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without I/O needs nothing");
    runtime.block_on(LocalSet::new().run_until(live(seed, is_recorded)))
}

async fn live(seed: u64, is_recorded: bool) -> Ran {
    let world = Shared::of(Plan::of(seed), seed, is_recorded);
    let function = Arc::new(function(&world));
    let (queue, mut events) = mpsc::unbounded_channel();
    {
        let mut world = world.lock();
        world.attempts.queue = Some(queue);
        let plan = world.plan.clone();
        world.note(|| format!("{plan:#?}"));
        world.set_up();
    }
    let mut working = Vec::new();
    while world.lock().elapsed() < LONGEST {
        match timeout(QUIET, events.recv()).await {
            Ok(Some(event)) => {
                let work = lambda::work(world.clone(), Arc::clone(&function), event);
                working.push(tokio::task::spawn_local(work));
            }
            Ok(None) => break,
            Err(_) if world.lock().busy == 0 => break,
            Err(_) => {}
        }
    }
    let mut panics = Vec::new();
    for work in working {
        if work.is_finished()
            && let Err(panicked) = work.await
        {
            panics.push(panicked.to_string());
        }
    }
    let mut world = world.lock();
    for panicked in panics {
        world.broken(Invariant::NoPanic, panicked);
    }
    world.witness_quiet();
    let broken = world.witness.broken.iter().map(ToString::to_string).collect();
    let requests = |side| world.requests.get(&side).copied().unwrap_or(0);
    let counts = [world.attempts.all.len(), requests(Side::Api), requests(Side::Aws)];
    Ran { broken, history: world.history.text(), counts }
}

/// The function in that world.
fn function(world: &Shared) -> Function {
    let variables = world.lock().plan.settings.clone();
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
    let settings = Settings::from_variables(variables).expect("what is drawn can be set");
    let (cluster, log) = (world.clone(), world.clone());
    let cluster = move || api_server::client(&cluster);
    Function::new(settings, &aws::double(world), cluster, move |line| log.lock().logged(line))
}

#[cfg(test)]
mod tests;

//! The world of one seed: what everything in it shares, its time, and what happens later by itself.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::time::Duration;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep};

use crate::api_server::cluster::ClusterState;
use crate::aws::Aws;
use crate::draw::{Plan, Side};
use crate::history::History;
use crate::invariants::{Invariant, Witness};
use crate::lambda::Attempts;

/// When a simulation begins, by the wall clock.
const BEGIN: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// A world, shared by all that happens in it. Its lock is never held while something waits.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

impl Shared {
    /// The world of that plan, in which nothing has happened yet.
    pub(crate) fn of(plan: Plan, seed: u64, is_recorded: bool) -> Self {
        let world = |me: &Weak<Mutex<World>>| {
            Mutex::new(World {
                rng: Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5157),
                cluster: ClusterState::default(),
                aws: Aws::default(),
                attempts: Attempts::default(),
                history: History::new(is_recorded),
                witness: Witness::default(),
                busy: 0,
                requests: BTreeMap::new(),
                began: Instant::now(),
                me: me.clone(),
                plan,
            })
        };
        Self(Arc::new_cyclic(world))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        match self.0.try_lock() {
            Ok(world) => world,
            Err(TryLockError::Poisoned(world)) => world.into_inner(),
            Err(TryLockError::WouldBlock) => panic!("a world has one thread, which has locked it already"),
        }
    }
}

/// Everything there is.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    /// For what cannot be drawn beforehand: how long an answer takes, for instance.
    pub(crate) rng: Rng,
    pub(crate) cluster: ClusterState,
    pub(crate) aws: Aws,
    pub(crate) attempts: Attempts,
    pub(crate) history: History,
    pub(crate) witness: Witness,
    /// How many events are on their way, or being worked on.
    pub(crate) busy: usize,
    /// How many requests were made to each side.
    pub(crate) requests: BTreeMap<Side, usize>,
    began: Instant,
    me: Weak<Mutex<World>>,
}

impl World {
    /// How long the world has existed.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The wall-clock time.
    pub(crate) fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// What time it is at an instant.
    pub(crate) fn at(&self, instant: Instant) -> Timestamp {
        BEGIN + SignedDuration::try_from(instant - self.began).unwrap_or_default()
    }

    /// The whole second, as the API server and EventBridge write it.
    pub(crate) fn second(&self) -> Timestamp {
        Timestamp::from_second(self.now().as_second()).unwrap_or(BEGIN)
    }

    /// Has something happen after a time.
    pub(crate) fn later(&self, after: Duration, what: impl FnOnce(&mut Self) + Send + 'static) {
        let me = self.me.clone();
        tokio::spawn(async move {
            sleep(after).await;
            let Some(world) = me.upgrade().map(Shared) else { return };
            if catch_unwind(AssertUnwindSafe(|| what(&mut world.lock()))).is_err() {
                let mut world = world.lock();
                world.busy = 0;
                world.broken(Invariant::NoPanic, "the world itself".to_owned());
            }
        });
    }

    /// A drawn time of so many milliseconds.
    pub(crate) fn ms(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.rng.u64(range))
    }

    /// Whether what happens in so many of a thousand cases happens now.
    pub(crate) fn perhaps(&mut self, of_a_thousand: u32) -> bool {
        self.rng.u32(0..1000) < of_a_thousand
    }

    /// Notes what happens, if anybody is going to read it.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        let at = self.began.elapsed();
        self.history.note(at, line);
    }
}

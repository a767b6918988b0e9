//! Queue of events by time. Each event goes to its component, and its effects to the queue and to the witnesses.

use std::collections::BTreeMap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use serde_json::Value;
use spillway_drainer::doubles::aws::AwsCall;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::aws::{Aws, AwsAnswer, AwsEvent};
use crate::clock::Clock;
use crate::cluster::{ApiAnswer, ApiRequest, ClusterEvent, Clusters};
use crate::event::{Effect, Effects, Event};
use crate::fact::Fact;
use crate::history::History;
use crate::lambda::{AttemptId, Begun, Delivery, Ending, Lambda};
use crate::network::{Network, Route};
use crate::people::People;
use crate::plan::{Plan, Side, instance_id};
use crate::witness::{Facts, Invariant, Past, Verdict, Witness, witnesses};

/// Longest simulated time.
const LONGEST: Duration = Duration::from_hours(72);

/// A simulation, shared by its requests. Its lock is never held across a wait.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<Simulation>>);

impl Shared {
    pub(crate) fn of(plan: Plan, seed: u64, is_recorded: bool) -> Self {
        let (plan, clock) = (Arc::new(plan), Clock::start());
        Self(Arc::new(Mutex::new(Simulation {
            clock,
            queue: BTreeMap::new(),
            queued: 0,
            news: Arc::new(Notify::new()),
            begun: Vec::new(),
            network: Network::of(seed),
            clusters: Clusters::of(&plan, clock, seed),
            aws: Aws::of(Arc::clone(&plan), clock, seed),
            lambda: Lambda::of(Arc::clone(&plan), clock, seed),
            people: People::of(seed),
            past: Past::default(),
            witnesses: witnesses(),
            verdict: Verdict::default(),
            history: History::new(clock, is_recorded),
            plan,
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Simulation> {
        match self.0.try_lock() {
            Ok(inside) => inside,
            Err(TryLockError::Poisoned(inside)) => inside.into_inner(),
            Err(TryLockError::WouldBlock) => panic!("the only thread of a simulation has locked it already"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Simulation {
    pub(crate) plan: Arc<Plan>,
    clock: Clock,
    /// Events by time and order of queueing.
    queue: BTreeMap<(Instant, u64), Event>,
    queued: u64,
    /// Notified of queued events and ended attempts.
    pub(crate) news: Arc<Notify>,
    begun: Vec<Begun>,
    pub(crate) network: Network,
    pub(crate) clusters: Clusters,
    aws: Aws,
    pub(crate) lambda: Lambda,
    people: People,
    past: Past,
    witnesses: Vec<Box<dyn Witness>>,
    pub(crate) verdict: Verdict,
    pub(crate) history: History,
}

impl Simulation {
    pub(crate) fn set_up(&mut self) {
        let plan = Arc::clone(&self.plan);
        for number in 0..plan.nodes {
            let (id, node, dns_name) = (instance_id(number), plan.node(number), plan.dns_name(number));
            self.handle(AwsEvent::Launches { id, node, dns_name }.into());
        }
        for cluster in 0..plan.cluster_count() {
            let effects = self.clusters[cluster].populate();
            self.perform(effects);
        }
        for interruption in &plan.interruptions {
            self.enqueue(interruption.begins, AwsEvent::Interrupts(interruption.clone()).into());
        }
        for change in &plan.people {
            self.enqueue(change.at, (*change).into());
        }
        for at in &plan.compactions {
            for cluster in 0..plan.cluster_count() {
                self.enqueue(*at, (cluster, ClusterEvent::Compacted).into());
            }
        }
    }

    /// Handles all events that are due. Returns the attempts that begin.
    pub(crate) fn step(&mut self) -> Vec<Begun> {
        let all_well = catch_unwind(AssertUnwindSafe(|| {
            while let Some(entry) = self.queue.first_entry()
                && entry.key().0 <= Instant::now()
            {
                let event = entry.remove();
                self.handle(event);
            }
        }));
        if all_well.is_err() {
            self.queue.clear();
            self.verdict.violate(Invariant::NoPanic, "the simulation itself");
        }
        mem::take(&mut self.begun)
    }

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Option<Instant> {
        let next = self.queue.keys().next().map(|(at, _)| *at);
        let end = self.clock.instant(LONGEST);
        next.or_else(|| self.lambda.is_at_work().then_some(end)).filter(|_| Instant::now() < end)
    }

    pub(crate) fn end(&mut self) {
        self.record(&Fact::Quiet { after: self.clock.elapsed() });
    }

    pub(crate) fn answer_api(&mut self, request: &ApiRequest) -> ApiAnswer {
        if request.is_write() {
            self.record(&Fact::WriteArrives { by: request.by, cluster: request.cluster });
        }
        let (answer, effects) = self.clusters[request.cluster].answer(request);
        self.perform(effects);
        self.history.note(|| format!("    answered {answer} ← {request}"));
        answer
    }

    pub(crate) fn answer_aws(&mut self, by: AttemptId, call: &AwsCall) -> AwsAnswer {
        let (answer, effects) = self.aws.answer(by, call);
        self.perform(effects);
        self.history.note(|| format!("    answered {answer:?} ← {} {}", call.name, call.body));
        answer
    }

    pub(crate) fn route(&mut self, (side, cluster): (Side, Option<usize>), by: AttemptId, request: &str) -> Route {
        self.verdict.count(format!("request to {side:?}"));
        let route = self.network.route((side, cluster), request, &self.plan, self.clock.elapsed());
        if let Some(fault) = route.fault {
            self.verdict.count(format!("fault {side:?} {fault:?}"));
        }
        self.history.note(|| {
            let fault = route.fault.map(|fault| format!(" [{fault:?}]")).unwrap_or_default();
            format!("  {by} {side:?} {request}{fault}")
        });
        route
    }

    pub(crate) fn logged(&mut self, by: AttemptId, line: &str) {
        let receipt: Value = serde_json::from_str(line).unwrap_or_default();
        if receipt.get("receipt").is_some() {
            self.record(&Fact::ReceiptWritten { by, receipt });
        }
    }

    pub(crate) fn attempt_ended(&mut self, id: AttemptId, delivery: Delivery, ending: Ending) {
        let effects = self.lambda.ended(id, delivery, ending);
        self.perform(effects);
        self.news.notify_one();
    }

    /// Records a fact for the history and the witnesses.
    pub(crate) fn record(&mut self, fact: &Fact) {
        self.history.note(|| fact.to_string());
        self.past.observe(fact, &self.clusters, self.clock);
        let Self { plan, clock, clusters, aws, lambda, past, .. } = self;
        let facts = Facts { plan, clock: *clock, clusters, aws, lambda, past };
        let before = self.verdict.violations.len();
        for witness in &mut self.witnesses {
            witness.observe(fact, &facts, &mut self.verdict);
        }
        for violation in &self.verdict.violations[before..] {
            self.history.note(|| format!("VIOLATION {violation}"));
        }
    }

    pub(crate) fn handle(&mut self, event: Event) {
        let effects = match event {
            Event::Cluster(cluster, event) => self.clusters[cluster].handle(event),
            Event::Aws(event) => self.aws.handle(event),
            Event::Lambda(event) => self.lambda.handle(event),
            Event::Person(change) => self.people.handle(change, self.plan.node(change.node), &self.clusters),
        };
        self.perform(effects);
    }

    fn perform(&mut self, Effects(effects): Effects) {
        for effect in effects {
            match effect {
                Effect::Now(event) => self.handle(event),
                Effect::Later(after, event) => self.enqueue(after, event),
                Effect::Begin(begun) => self.begun.push(begun),
                Effect::Fact(fact) => self.record(&fact),
            }
        }
    }

    fn enqueue(&mut self, after: Duration, event: Event) {
        self.queued += 1;
        self.queue.insert((Instant::now() + after, self.queued), event);
        self.news.notify_one();
    }
}

//! AWS in memory: instances, their interruptions, lifecycle actions, schedules, and calls of the function.

mod actions;
mod calls;
mod instances;
mod interruptions;
mod replacement;

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_drainer::doubles::REGION;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::dice::Dice;
use crate::event::Effects;
use crate::lambda::{ACCOUNT, LambdaEvent};
use crate::plan::{Interruption, NodeId, Plan};
use actions::Action;
pub(crate) use actions::{ActionResult, AfterHook};
use calls::Schedule;
pub(crate) use calls::{AwsAnswer, endpoint};
use instances::Instance;

/// Age of a rebalance recommendation: two minutes of its hour are left, so that a world is short.
const RECOMMENDATION_AGE: SignedDuration = SignedDuration::from_mins(58);

#[derive(Debug)]
pub(crate) struct Aws {
    plan: Arc<Plan>,
    clock: Clock,
    dice: Dice,
    effects: Effects,
    instances: BTreeMap<String, Instance>,
    actions: BTreeMap<String, Action>,
    schedules: BTreeMap<String, Schedule>,
    /// Starts of cancelled maintenance, by instance.
    called_off: BTreeMap<String, Timestamp>,
    /// From when on a spot request has the status of its interruption, and the time that this status names.
    marked: BTreeMap<String, (Instant, Timestamp)>,
    last_event: u32,
    last_schedule: u32,
}

/// An event of AWS. `delay` is the delay of its notice. `ActionDue` and `ScheduleDue` have no effect if their time was moved.
#[derive(Debug)]
pub(crate) enum AwsEvent {
    Launches { id: String, node: NodeId, dns_name: String },
    Interrupts(Interruption),
    CallsOff { id: String, starts: Timestamp, notice: Notice },
    Terminates { id: String, delay: Duration },
    Ends { id: String, delay: Duration },
    Stops { id: String, starts_after: Option<Duration>, delay: Duration },
    Starts { id: String, delay: Duration },
    Reboots { id: String },
    Boots { id: String },
    LeavesWarmPool { id: String, delay: Duration },
    ActionDue { token: String },
    ActionFollowed { instance: String, after_hook: AfterHook, delay: Duration },
    ScheduleDue { name: String, number: u32 },
}

#[derive(Debug)]
pub(crate) struct Notice {
    source: &'static str,
    detail_type: &'static str,
    detail: Value,
    delay: Duration,
}

impl Aws {
    pub(crate) fn of(plan: Arc<Plan>, clock: Clock, seed: u64) -> Self {
        Self {
            plan,
            clock,
            dice: Dice::of(seed, "aws"),
            effects: Effects::default(),
            instances: BTreeMap::new(),
            actions: BTreeMap::new(),
            schedules: BTreeMap::new(),
            called_off: BTreeMap::new(),
            marked: BTreeMap::new(),
            last_event: 0,
            last_schedule: 0,
        }
    }

    pub(crate) fn handle(&mut self, event: AwsEvent) -> Effects {
        match event {
            AwsEvent::Launches { id, node, dns_name } => self.launch(id, node, dns_name),
            AwsEvent::Interrupts(interruption) => self.interrupt(&interruption),
            AwsEvent::CallsOff { id, starts, notice } => {
                self.called_off.insert(id, starts);
                self.notify(&notice);
            }
            AwsEvent::Terminates { id, delay } => self.terminate(&id, delay),
            AwsEvent::Ends { id, delay } => self.end(id, delay),
            AwsEvent::Stops { id, starts_after, delay } => self.stop(&id, starts_after, delay),
            AwsEvent::Starts { id, delay } => drop(self.start(&id, delay)),
            AwsEvent::Reboots { id } => self.reboot(id),
            AwsEvent::Boots { id } => self.boot(id),
            AwsEvent::LeavesWarmPool { id, delay } => self.leave_warm_pool(&id, delay),
            AwsEvent::ActionDue { token } => self.expire_action(&token),
            AwsEvent::ActionFollowed { instance, after_hook, delay } => self.follow_action(instance, after_hook, delay),
            AwsEvent::ScheduleDue { name, number } => self.fire(name, number),
        }
        mem::take(&mut self.effects)
    }

    fn notify(&mut self, notice: &Notice) {
        self.last_event += 1;
        let Notice { source, detail_type, detail, delay } = notice;
        let is_recommendation = *detail_type == "EC2 Instance Rebalance Recommendation";
        let sent = self.clock.second() - if is_recommendation { RECOMMENDATION_AGE } else { SignedDuration::ZERO };
        let event = json!({"version": "0", "id": format!("event-{}", self.last_event), "detail-type": detail_type,
            "source": source, "account": ACCOUNT, "time": sent, "region": REGION, "resources": [],
            "detail": detail});
        self.effects.now(LambdaEvent::Sent { event, after: *delay });
    }

    /// Lifecycle actions by token.
    pub(crate) fn actions(&self) -> &BTreeMap<String, Action> {
        &self.actions
    }

    pub(crate) fn node_of(&self, instance: &str) -> Option<&NodeId> {
        self.instances.get(instance).map(|instance| &instance.node)
    }

    /// Running instances and their nodes.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&str, &NodeId)> {
        let running = self.instances.iter().filter(|(_, instance)| instance.state() == "running");
        running.map(|(id, instance)| (id.as_str(), &instance.node))
    }
}

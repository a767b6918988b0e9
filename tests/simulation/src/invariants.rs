//! What must hold, whatever happens. Each has a name; what breaks one is kept, with when and by whom.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_notice::continued::KEY;

use crate::api_server::nodes::US;
use crate::aws::{ActionResult, Then};
use crate::draw::{Owner, Side};
use crate::lambda::{Attempt, AttemptId, instance_of};
use crate::said::{Goes, Said};
use crate::world::World;

/// A notice that comes so late is worked on longer than it says.
const LATE_S: i64 = 15;

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    /// A hook is completed when its node is empty or its window over, and not before.
    HookNotBeforeEmpty,
    /// A hook that the function could have answered is not left to its timeout.
    HookAnswered,
    /// An invocation that has completed a hook does not complete it again.
    HookOnce,
    /// Only a pod that something blocks is deleted, and not before its last safe moment.
    DeletedWhenDue,
    /// No pod is given more grace than it asks for or has, nor less than there is room for.
    GraceIsRight,
    /// Only pods of the notice's node are touched, by their UIDs.
    OwnPods,
    /// What others put on a node stays, and so does what they took off.
    OthersUntouched,
    /// When all is quiet, a node that is in use has nothing of ours.
    NothingLeft,
    /// An invocation ends with a receipt.
    ReceiptIsWritten,
    /// A pod that a receipt calls gone is gone; one that it calls lost was there.
    ReceiptIsTrue,
    /// No invocation is cut off by Lambda, and no drain outlasts its window.
    EndsInTime,
    /// A pod is requested to leave so often at most.
    RequestsAreBounded,
    /// For one notice the pods of an app that its controller puts back are evicted three times each at most.
    PutBackIsLeft,
    /// Nothing panics.
    NoPanic,
}

/// An invariant that was broken, and how.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) what: Invariant,
    how: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.what, self.how)
    }
}

/// By which way a pod is requested to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Evict,
    Delete,
}

/// A request that a pod leave.
#[derive(Debug)]
pub(crate) struct Leave<'a> {
    pub(crate) name: &'a str,
    pub(crate) uid: Option<&'a str>,
    pub(crate) grace_s: Option<u64>,
    pub(crate) way: Way,
}

/// What was seen, for what must hold over time.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    pub(crate) broken: Vec<Broken>,
    /// On the node of which instance each pod is, or was, and of which app.
    places: BTreeMap<String, (String, usize)>,
    /// When each pod went.
    gone: BTreeMap<String, Timestamp>,
    /// When each node was patched first.
    claimed: BTreeMap<String, Timestamp>,
    /// Which nodes a person has uncordoned.
    uncordoned: BTreeSet<String>,
    /// The nodes of which instances are to be left alone, or were.
    opted_out: BTreeSet<String>,
    evictions: BTreeSet<(AttemptId, String)>,
    /// The pods that were evicted for each notice, by its event's id, its instance and their app.
    evicted: BTreeMap<(String, Option<String>, usize), BTreeSet<String>>,
    requests: BTreeMap<(AttemptId, String), u32>,
    completed: BTreeSet<(AttemptId, String)>,
}

impl World {
    pub(crate) fn broken(&mut self, what: Invariant, how: String) {
        self.note(|| format!("BROKEN {what:?}: {how}"));
        self.witness.broken.push(Broken { what, how });
    }

    fn holds(&mut self, what: Invariant, holds: bool, how: impl FnOnce() -> String) {
        if !holds {
            self.broken(what, how());
        }
    }

    /// By how much the function's clock may differ.
    fn skew(&self) -> SignedDuration {
        SignedDuration::from_millis(self.plan.skew_ms + 100)
    }

    /// What the notice said that an attempt is about.
    fn said(&self, attempt: AttemptId) -> Option<Said> {
        let Attempt { event, began, .. } = &self.attempts.all[attempt.0];
        Said::by(event, *began, &self.plan)
    }

    fn node_of(&self, attempt: AttemptId) -> Option<String> {
        self.node_of_instance(self.attempts.all[attempt.0].instance.as_ref()?)
    }

    fn node_of_instance(&self, instance: &str) -> Option<String> {
        self.aws.instances.get(instance).map(|instance| instance.node.clone())
    }

    /// A request that a pod leave.
    pub(crate) fn witness_leave(&mut self, attempt: AttemptId, leave: &Leave<'_>) {
        let Some(uid) = leave.uid.map(str::to_owned) else {
            return self.broken(Invariant::OwnPods, format!("{attempt} names {} by no UID", leave.name));
        };
        let key = (attempt, uid.clone());
        let (place, instance) = (self.witness.places.get(&uid).cloned(), self.attempts.all[attempt.0].instance.clone());
        let is_own = place.is_some() && place.as_ref().map(|(place, _)| place) == instance.as_ref();
        self.holds(Invariant::OwnPods, is_own, || {
            format!("{attempt} is about {instance:?}, and touches {uid} of {place:?}")
        });
        let Some((_, number)) = place else { return };
        let app = self.plan.apps[number].clone();
        let (Some(said), now) = (self.said(attempt), self.now()) else { return };

        // Past its last safe moment it is evicted and deleted in turn, each once a second, while no answer comes.
        let requests = self.witness.requests.entry(key.clone()).or_default();
        *requests += 1;
        let (requests, most) = (*requests, 40 + 2 * u32::try_from(self.plan.invocation.as_secs()).unwrap_or(0));
        self.holds(Invariant::RequestsAreBounded, requests <= most, || {
            format!("{attempt} requests {uid} for the {requests}th time")
        });

        let room = said.room(now).map(|room| room.as_secs());
        let skew = self.skew().as_secs() + 1;
        let own = i64::try_from(app.grace_s).unwrap_or(i64::MAX);
        let given = leave.grace_s.and_then(|given| i64::try_from(given).ok());
        let is_right = match (given, room) {
            // Never zero, which ends the pod's object while it runs, and never more than it asks for.
            (Some(given), Some(room)) => (1..=own.max(1)).contains(&given) && (given - room.max(1)).abs() <= skew + 1,
            (Some(_), None) => false,
            // A notice that comes late has a window all the same: what is left is not known here.
            (None, Some(room)) => own <= room + skew + 1 || room < LATE_S,
            (None, None) => true,
        };
        self.holds(Invariant::GraceIsRight, is_right || room.is_some_and(|room| room < LATE_S), || {
            format!("{attempt} gives {uid} {given:?} of {own} s, and there are {room:?}")
        });
        match leave.way {
            Way::Evict => {
                self.witness.evictions.insert(key);
                self.witness_eviction(attempt, uid, number);
            }
            Way::Delete => {
                let was_blocked = app.annotation.is_some() || self.witness.evictions.contains(&key);
                self.holds(Invariant::DeletedWhenDue, was_blocked, || {
                    format!("{attempt} deletes {uid}, which nothing blocks")
                });
                let silent = instance.is_some_and(|instance| !self.reports(&instance));
                let due = said.forced_from(app.grace_s).filter(|due| *due <= now + self.skew());
                let is_due = due.is_some() || silent && matches!(said.goes, Goes::Soon(_));
                self.holds(Invariant::DeletedWhenDue, is_due, || {
                    format!(
                        "{attempt} deletes {uid} at {now}, and by {said:?} it is due at {:?}",
                        said.forced_from(app.grace_s)
                    )
                });
            }
        }
    }

    /// The eviction of a pod of that app.
    fn witness_eviction(&mut self, attempt: AttemptId, uid: String, app: usize) {
        let notice = |attempt: &Attempt| {
            let event = &attempt.event;
            event.get(KEY).map_or(event, |continued| &continued["notice"])["id"].to_string()
        };
        let (all, of) = (&self.attempts.all, notice(&self.attempts.all[attempt.0]));
        // Each delivery and each of Lambda's retries begins anew.
        let beginnings = all.iter().filter(|one| one.event.get(KEY).is_none() && notice(one) == of).count();
        let key = (of, all[attempt.0].instance.clone(), app);
        let evicted = self.witness.evicted.entry(key).or_default();
        evicted.insert(uid);
        let (evicted, pods) = (evicted.len(), self.plan.apps[app].pods);
        self.holds(Invariant::PutBackIsLeft, evicted <= 3 * pods * beginnings, || {
            format!("{attempt} evicts a {evicted}th pod of app {app}, which has {pods}")
        });
    }

    /// A pod has come to a node.
    pub(crate) fn witness_place(&mut self, uid: &str, node: &str, app: usize) {
        let instance = self.instance_at(node).unwrap_or_default();
        self.witness.places.entry(uid.to_owned()).or_insert((instance, app));
    }

    /// The instance whose node has that name by now.
    fn instance_at(&self, node: &str) -> Option<String> {
        let provider_id = self.cluster.nodes.get(node)?["spec"]["providerID"].as_str()?;
        provider_id.rsplit('/').next().map(str::to_owned)
    }

    /// Whether an instance has a node, and its kubelet reports.
    fn reports(&self, instance: &str) -> bool {
        let Some(known) = self.aws.instances.get(instance) else { return false };
        known.kubelet_runs && self.instance_at(&known.node).as_deref() == Some(instance)
    }

    /// The function changes a node.
    pub(crate) fn witness_patch(&mut self, attempt: AttemptId, name: &str, before: &Value, after: &Value) {
        let now = self.now();
        self.witness.claimed.entry(name.to_owned()).or_insert(now);
        let node = self.node_of(attempt);
        self.holds(Invariant::OthersUntouched, node.as_deref() == Some(name), || {
            format!("{attempt} is about {node:?}, and patches {name}")
        });
        let cordoned = |node: &Value| node["spec"]["unschedulable"] == json!(true);
        if cordoned(before) && !cordoned(after) {
            let by = before["metadata"]["managedFields"][0]["manager"].as_str().unwrap_or("nobody").to_owned();
            self.holds(Invariant::OthersUntouched, by == US, || {
                format!("{attempt} takes the cordon of {by} from {name}")
            });
        }
        for map in ["labels", "annotations"] {
            for (key, value) in before["metadata"][map].as_object().into_iter().flatten() {
                let is_ours = key == "spillway/claim" || value == "spillway";
                let stays = is_ours || after["metadata"][map].get(key) == Some(value);
                self.holds(Invariant::OthersUntouched, stays, || format!("{attempt} takes {key}={value} from {name}"));
            }
        }
        let taints = |node: &Value| node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        for taint in taints(before) {
            let is_ours =
                taint["key"].as_str().is_some_and(|key| key.starts_with("spillway/") || key.starts_with("aws-node-t"))
                    || taint["value"] == "spillway";
            let stays = is_ours || taints(after).contains(&taint);
            self.holds(Invariant::OthersUntouched, stays, || format!("{attempt} takes {taint} from {name}"));
        }
    }

    /// The function answers a hook that waits.
    pub(crate) fn witness_completion(&mut self, attempt: AttemptId, token: &str) {
        let is_first = self.witness.completed.insert((attempt, token.to_owned()));
        self.holds(Invariant::HookOnce, is_first, || format!("{attempt} completes {token} again"));
        let action = &self.aws.actions[token];
        if action.then == Then::Serve {
            return;
        }
        let (since, instance) = (self.at(action.since), action.instance.clone());
        let node = self.aws.instances[&instance].node.clone();
        let waits = Said::longest_wait(&self.plan);
        if self.now() + self.skew() + SignedDuration::from_secs(1) >= since + waits || !self.reports(&instance) {
            return;
        }
        let left = self.that_have_to_leave(&node);
        self.holds(Invariant::HookNotBeforeEmpty, left.is_empty(), || {
            format!("{attempt} completes {token} while {left:?} are on {node}")
        });
    }

    /// The pods of a node that have to leave it, and have been there for a while.
    fn that_have_to_leave(&self, node: &str) -> Vec<String> {
        let seen = self.now() - SignedDuration::from_secs(10);
        let claimed = self.witness.claimed.get(node).copied().unwrap_or(Timestamp::MAX);
        let there = self.cluster.pods.values().filter(|pod| pod.node.as_deref() == Some(node));
        let leave = there.filter(|pod| {
            let app = &self.plan.apps[pod.app];
            let returns = app.tolerates || self.witness.uncordoned.contains(node);
            let is_put_back = returns && pod.created >= claimed - SignedDuration::from_secs(5);
            let stays = matches!(app.owner, Owner::DaemonSet | Owner::Mirror) || pod.has_stopped || is_put_back;
            !stays && pod.created < seen
        });
        leave.map(|pod| pod.uid.clone()).collect()
    }

    /// What the function says came of a notice.
    pub(crate) fn witness_receipt(&mut self, attempt: AttemptId, receipt: &Value) {
        // What the drain could have seen: what went in its last seconds may not have been told yet.
        let at: Option<Timestamp> = receipt["notice"]["time"].as_str().and_then(|at| at.parse().ok());
        let end = receipt["window"]["end_ms"].as_i64().map(SignedDuration::from_millis);
        let end = at.zip(end).map_or(self.now(), |(at, end)| (at + end).min(self.now()));
        let seen = end - SignedDuration::from_secs(10) - self.skew();
        let api_was_well = self.plan.troubles.iter().all(|trouble| trouble.side != Side::Api);
        for pod in receipt["pods"].as_array().into_iter().flatten() {
            let (uid, fate) = (pod["uid"].as_str().unwrap_or_default(), pod["fate"].as_str().unwrap_or_default());
            let there = self.cluster.pods.get(uid);
            let is_true = match fate {
                "clean" | "clamped" | "forced" => there.is_none_or(|pod| pod.has_stopped),
                "lost" if api_was_well => {
                    there.is_some() || self.witness.gone.get(uid).is_some_and(|gone| seen <= *gone)
                }
                _ => true,
            };
            self.holds(Invariant::ReceiptIsTrue, is_true, || format!("{attempt} says that {uid} is {fate}"));
        }
    }

    /// Lambda has cut an attempt off.
    pub(crate) fn witness_cut_off(&mut self, attempt: AttemptId) {
        self.broken(Invariant::EndsInTime, format!("{attempt} outlasts its invocation"));
    }

    /// An attempt has ended by itself.
    pub(crate) fn witness_end(&mut self, attempt: AttemptId) {
        let is_written = self.attempts.all[attempt.0].receipt.is_some();
        self.holds(Invariant::ReceiptIsWritten, is_written, || format!("{attempt} writes none"));
        let Some(Said { goes: Goes::At(at), .. }) = self.said(attempt) else { return };
        let latest = at.max(self.attempts.all[attempt.0].began + SignedDuration::from_secs(10))
            + SignedDuration::from_secs(20)
            + self.skew();
        let now = self.now();
        self.holds(Invariant::EndsInTime, now <= latest, || {
            format!("{attempt} ends at {now}, and its instance goes at {at}")
        });
    }

    /// Whether maintenance was announced after it was called off: by a duplicate, or an attempt that came late.
    fn announced_late(&self, instance: &str) -> bool {
        let of_instance = self.attempts.all.iter().filter(|attempt| attempt.instance.as_deref() == Some(instance));
        let status = |event: &Value| {
            let notice = event.get("spillway-continuation").map_or(event, |continuation| &continuation["notice"]);
            notice["detail"]["statusCode"].as_str().map(str::to_owned)
        };
        let said: Vec<_> = of_instance.filter_map(|attempt| status(&attempt.event)).collect();
        let closed = said.iter().position(|said| said == "closed");
        closed.is_some_and(|closed| said[closed..].iter().any(|said| said == "upcoming"))
    }

    /// All is quiet.
    pub(crate) fn witness_quiet(&mut self) {
        let aws_was_well = self.plan.troubles.iter().all(|trouble| trouble.side != Side::Aws);
        let expired: Vec<_> = self
            .aws
            .actions
            .iter()
            .filter(|(_, action)| action.result == Some(ActionResult::Expired))
            .filter(|(_, action)| action.then != Then::Serve || self.plan.setting("SPILLWAY_LAUNCH") != Some("ignore"))
            .map(|(token, action)| (token.clone(), action.instance.clone()))
            .collect();
        for (token, instance) in expired {
            let mut attempts = self.attempts.all.iter().filter(|attempt| attempt.instance.as_ref() == Some(&instance));
            let opted_out = self.witness.opted_out.contains(&instance);
            let could = aws_was_well && !opted_out && attempts.all(|attempt| !attempt.is_killed);
            self.holds(Invariant::HookAnswered, !could, || format!("{token} was left to its timeout"));
        }
        let in_use = self.aws.instances.iter().filter(|(_, instance)| instance.state() == "running");
        let in_use: Vec<_> = in_use.map(|(id, instance)| (id.clone(), instance.node.clone())).collect();
        for (id, node) in in_use {
            let has_failed = self.attempts.failed.iter().any(|event| instance_of(event) == Some(&id));
            let Some(object) = self.cluster.nodes.get(&node).filter(|_| !has_failed) else { continue };
            let metadata = &object["metadata"];
            if metadata["labels"].get("spillway/ignore").is_some() {
                continue;
            }
            // When its instance runs again, a node is looked for by the names that EKS gives nodes (docs/what-happens.md).
            let claim = metadata["annotations"]["spillway/claim"].as_str().unwrap_or_default();
            if node.starts_with("worker") && ["instance stopping", "spot"].iter().any(|kind| claim.contains(kind)) {
                continue;
            }
            // Nobody remembers that maintenance was called off: what comes late announces it once more.
            if claim.contains("maintenance") && self.announced_late(&id) {
                continue;
            }
            let ours = [
                metadata["annotations"].get("spillway/claim").is_some(),
                metadata["labels"].as_object().is_some_and(|labels| labels.values().any(|value| value == "spillway")),
                metadata["managedFields"][0]["manager"] == US,
                object["spec"]["taints"].to_string().contains("spillway"),
            ];
            let how = format!("{node} of {id} has {metadata} {}", object["spec"]);
            self.holds(Invariant::NothingLeft, !ours.contains(&true), || how);
        }
    }
}

impl Witness {
    /// A person opts a node out.
    pub(crate) fn opted_out(&mut self, instance: &str) {
        self.opted_out.insert(instance.to_owned());
    }

    /// A person uncordons a node.
    pub(crate) fn uncordoned(&mut self, node: &str) {
        self.uncordoned.insert(node.to_owned());
    }

    /// A pod is no more.
    pub(crate) fn gone(&mut self, uid: &str, at: Timestamp) {
        self.gone.insert(uid.to_owned(), at);
    }
}

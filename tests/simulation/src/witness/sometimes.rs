//! Counts what has happened: where nothing happens, no invariant is broken. A run of two thousand seeds in which one of `SOMETIMES`
//! never happens fails, but for what is rare; and so does one of ten thousand.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use spillway_contract::node::is_cordoned;

use super::{Facts, Verdict, Witness};
use crate::fact::{Fact, Method};
use crate::lambda::Ending;

/// How often each thing has happened.
pub type Counts = BTreeMap<String, u64>;

/// Counts what happens, in the verdict.
#[derive(Debug, Default)]
pub(super) struct Sometimes {
    /// The requests of Lambda, and the notices, that came before.
    seen: BTreeSet<String>,
    /// The clusters of instances that notices were about.
    noticed: BTreeSet<usize>,
}

impl Witness for Sometimes {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        let mut count = |what: String| verdict.count(what);
        match fact {
            Fact::Interruption { cause, .. } => count(first_word("cause", cause)),
            Fact::Person { command, .. } => count(first_word("person", command)),
            Fact::AttemptBegan { id, request, .. } => {
                let attempt = facts.lambda.attempt(*id);
                let notice = format!("notice {} {}", attempt.notice()["id"], attempt.is_first());
                let (is_new, is_new_notice) = (self.seen.insert(request.clone()), self.seen.insert(notice));
                count("invocation".to_owned());
                if facts.node(*id).is_some_and(|node| self.noticed.insert(node.cluster)) && self.noticed.len() > 1 {
                    count("world with notices in both clusters".to_owned());
                }
                match (is_new, is_new_notice || !attempt.is_first()) {
                    (false, _) => count("event tried again".to_owned()),
                    (true, false) => count("event delivered twice".to_owned()),
                    (true, true) => {}
                }
            }
            Fact::GivenUp { .. } => count("event given up".to_owned()),
            Fact::AttemptEnded { ending: Ending::Killed, .. } => count("invocation killed".to_owned()),
            Fact::ActionOver { result, .. } => count(format!("hook {result:?}")),
            Fact::ScheduleFired { .. } => count("schedule fired".to_owned()),
            Fact::LeaveRequested { request, .. } => {
                let clamped = if request.grace_s.is_some() { " with less grace" } else { "" };
                let method = if request.method == Method::Evict { "evict" } else { "delete" };
                count(format!("request {method}{clamped}"));
            }
            Fact::NodePatched { node, before, after, .. } => {
                if facts.clusters.has_namesake(node) {
                    count("node patched that has a namesake in the other cluster".to_owned());
                }
                changes(before, after).into_iter().for_each(count);
            }
            Fact::Quiet { .. } if facts.plan.cluster_count() > 1 => {
                count("world of two clusters".to_owned());
                if facts.plan.outages.iter().any(|outage| outage.cluster.is_some()) {
                    count("world with an outage in one of two clusters".to_owned());
                }
            }
            Fact::ReceiptWritten { receipt, .. } => written(receipt).into_iter().for_each(count),
            _ => {}
        }
    }
}

/// A variant's name.
fn first_word(of: &str, variant: &impl std::fmt::Debug) -> String {
    let variant = format!("{variant:?}");
    format!("{of} {}", variant.split(' ').next().unwrap_or_default())
}

/// Changes that a patch makes to a node.
pub(crate) fn changes(before: &Value, after: &Value) -> Vec<String> {
    let claim = |node: &Value| node["metadata"]["annotations"]["spillway/claim"].as_str().map(str::to_owned);
    let taints = |node: &Value| node["spec"]["taints"].as_array().map_or(0, Vec::len);
    let is_out = |node: &Value| node["spec"]["taints"].to_string().contains("out-of-service");
    let what = match (claim(before), claim(after)) {
        (None, Some(_)) => "claimed",
        (Some(before), Some(after)) if before != after => "claim taken over",
        (Some(_), None) => "given back",
        (None, None) | (Some(_), Some(_)) => "patched",
    };
    let cordoned = match (is_cordoned(before), is_cordoned(after)) {
        (false, true) if claim(before).is_some() => Some("cordoned again"),
        (true, true) if claim(before).is_none() => Some("claimed though cordoned"),
        (true, false) => Some("uncordoned"),
        _ => None,
    };
    let tainted = (taints(before) < taints(after)).then_some("tainted");
    let out = (!is_out(before) && is_out(after)).then_some("out of service");
    let all = [Some(what), cordoned, tainted, out].into_iter().flatten();
    all.map(|what| format!("node {what}")).collect()
}

/// What a receipt tells.
fn written(receipt: &Value) -> Vec<String> {
    let mut told = Vec::new();
    for field in ["ending", "decision"] {
        told.extend(receipt[field].as_str().map(|value| format!("{field} {value}")));
    }
    told.extend(receipt["hook"]["state"].as_str().map(|state| format!("hook {state}")));
    told.extend(receipt["hook"]["result"].as_str().map(|result| format!("hook told {result}")));
    told.extend(receipt["not_cordoned"].as_str().map(|_| "not cordoned".to_owned()));
    told.extend(receipt["earlier"].as_array().map(|_| "drain of several invocations".to_owned()));
    for pod in receipt["pods"].as_array().into_iter().flatten() {
        told.push(format!("fate {}", pod["fate"].as_str().unwrap_or_default()));
        let answers = pod["answers"].as_object().into_iter().flatten();
        told.extend(answers.map(|(answer, _)| format!("answer {answer}")));
    }
    told
}

/// What happens sometimes: each more than twenty times in ten thousand seeds.
pub const SOMETIMES: &[&str] = &[
    "answer blocked-by-budget",
    "answer blocked-by-several-budgets",
    "answer deleted",
    "answer evicted",
    "answer gone",
    "answer no-answer",
    "answer server-error",
    "answer throttled",
    "answer unauthorized",
    "cause Maintenance",
    "cause Rebalance",
    "cause ShutDown",
    "cause Spot",
    "cause Stop",
    "cause Terminate",
    "cause WarmPool",
    "decision await-ready",
    "decision drain",
    "decision ignore",
    "decision out-of-service",
    "decision postpone",
    "decision uncordon",
    "drain of several invocations",
    "ending continued",
    "ending done",
    "ending drained",
    "ending failed",
    "ending ignored",
    "ending joined",
    "event delivered twice",
    "event given up",
    "event tried again",
    "fate clamped",
    "fate clean",
    "fate forced",
    "fate lost",
    "fate remaining",
    "fate returned",
    "fate stayed",
    "fate unconfirmed",
    "fate would-be-blocked",
    "fate would-leave",
    "fault Api AnswerLost",
    "fault Api Denied",
    "fault Api Hangs",
    "fault Api Refused",
    "fault Api RequestLost",
    "fault Api Slow",
    "fault Api Unauthorized",
    "fault Api Webhook",
    "fault Aws AnswerLost",
    "fault Aws Denied",
    "fault Aws Hangs",
    "fault Aws Refused",
    "fault Aws RequestLost",
    "fault Aws Slow",
    "hook Completed",
    "hook Expired",
    "hook already-over",
    "hook completed",
    "hook held",
    "hook left",
    "hook told ABANDON",
    "hook told CONTINUE",
    "node claim taken over",
    "node claimed",
    "node claimed though cordoned",
    "node cordoned again",
    "node given back",
    "node out of service",
    "node patched",
    "node patched that has a namesake in the other cluster",
    "node tainted",
    "node uncordoned",
    "not cordoned",
    "person Cordon",
    "person Delete",
    "person Label",
    "person OptOut",
    "person Recordon",
    "person Replace",
    "person Taint",
    "person Uncordon",
    "process knew its cluster from before",
    "process served both clusters",
    "request delete",
    "request delete with less grace",
    "request evict",
    "request evict with less grace",
    "schedule fired",
    "watch ended",
    "watch reset",
    "world of two clusters",
    "world with an outage in one of two clusters",
    "world with notices in both clusters",
    "invocation killed",
];

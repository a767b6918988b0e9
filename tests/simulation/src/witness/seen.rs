//! What has happened at all: a simulation in which nothing happens any more breaks nothing. `SOMETIMES` has what is to happen in
//! ten thousand seeds; a run of so many in which one of them does not fails.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Facts, Verdict, Witness};
use crate::fact::{Fact, Method};
use crate::lambda::Ending;

/// How often each thing has happened.
pub type Counts = BTreeMap<String, u64>;

/// Counts what happens, in the verdict.
#[derive(Debug, Default)]
pub(super) struct Seen;

impl Witness for Seen {
    fn sees(&mut self, fact: &Fact, _: &Facts<'_>, verdict: &mut Verdict) {
        let mut count = |what: String| *verdict.seen.entry(what).or_default() += 1;
        match fact {
            Fact::Interruption { cause, .. } => count(first_word("cause", cause)),
            Fact::Person { command, .. } => count(first_word("person", command)),
            Fact::Fault { side, fault } => count(format!("fault {side:?} {fault:?}")),
            Fact::WatchBroke { how } => count(format!("watch {how}")),
            Fact::Duplicated => count("event twice".to_owned()),
            Fact::AttemptBegan { retries: 1.., .. } => count("event retried".to_owned()),
            Fact::GivenUp { .. } => count("event given up".to_owned()),
            Fact::AttemptEnded { ending: Ending::Killed, .. } => count("attempt killed".to_owned()),
            Fact::ActionOver { result, .. } => count(format!("action {result:?}")),
            Fact::ScheduleFired { .. } => count("schedule fired".to_owned()),
            Fact::LeaveRequested { request, .. } => {
                let clamped = if request.grace_s.is_some() { " with less grace" } else { "" };
                let method = if request.method == Method::Evict { "evict" } else { "delete" };
                count(format!("request {method}{clamped}"));
            }
            Fact::NodePatched { before, after, .. } => patched(before, after).into_iter().for_each(count),
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

/// What a patch does to a node.
fn patched(before: &Value, after: &Value) -> Vec<String> {
    let claim = |node: &Value| node["metadata"]["annotations"]["spillway/claim"].as_str().map(str::to_owned);
    let cordon = |node: &Value| node["spec"]["unschedulable"] == true;
    let taints = |node: &Value| node["spec"]["taints"].as_array().map_or(0, Vec::len);
    let is_out = |node: &Value| node["spec"]["taints"].to_string().contains("out-of-service");
    let what = match (claim(before), claim(after)) {
        (None, Some(_)) => "claimed",
        (Some(before), Some(after)) if before != after => "claim taken over",
        (Some(_), None) => "given back",
        (None, None) | (Some(_), Some(_)) => "patched",
    };
    let cordoned = match (cordon(before), cordon(after)) {
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
    for field in ["ending", "decision", "managed_by"] {
        told.extend(receipt[field].as_str().map(|value| format!("{} {value}", field.replace('_', " "))));
    }
    told.extend(receipt["hook"]["state"].as_str().map(|state| format!("hook {state}")));
    told.extend(receipt["hook"]["result"].as_str().map(|result| format!("hook told {result}")));
    told.extend(receipt["dry_run"].as_bool().map(|_| "dry run".to_owned()));
    told.extend(receipt["not_cordoned"].as_str().map(|_| "not cordoned".to_owned()));
    told.extend(receipt["earlier"].as_array().map(|_| "drain of several invocations".to_owned()));
    for step in receipt["steps"].as_array().into_iter().flatten() {
        told.push(format!("step {}", step["step"].as_str().unwrap_or_default()));
    }
    for after in receipt["after_drain"].as_object().into_iter().flatten() {
        told.push(format!("after drain {}", after.0));
    }
    for pod in receipt["pods"].as_array().into_iter().flatten() {
        told.push(format!("fate {}", pod["fate"].as_str().unwrap_or_default()));
        let answers = pod["answers"].as_object().into_iter().flatten();
        told.extend(answers.map(|(answer, _)| format!("answer {answer}")));
    }
    told
}

/// What happens sometimes.
pub const SOMETIMES: &[&str] = &[
    "action Completed",
    "action Expired",
    "action InstanceGone",
    "answer blocked-by-budget",
    "answer blocked-by-several-budgets",
    "answer deleted",
    "answer evicted",
    "answer forbidden",
    "answer gone",
    "answer namespace-terminating",
    "answer no-answer",
    "answer replaced",
    "answer server-error",
    "answer throttled",
    "answer unauthorized",
    "answer would-leave",
    "attempt killed",
    "cause Maintenance",
    "cause Rebalance",
    "cause ShutDown",
    "cause Spot",
    "cause Stop",
    "cause Terminate",
    "cause WarmPool",
    "decision await-ready",
    "decision cordon",
    "decision drain",
    "decision ignore",
    "decision out-of-service",
    "decision postpone",
    "decision uncordon",
    "drain of several invocations",
    "dry run",
    "ending continued",
    "ending done",
    "ending drained",
    "ending failed",
    "ending ignored",
    "ending joined",
    "event given up",
    "event retried",
    "event twice",
    "fate clamped",
    "fate clean",
    "fate forced",
    "fate lost",
    "fate remaining",
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
    "fault Api WebhookHangs",
    "fault Aws AnswerLost",
    "fault Aws Denied",
    "fault Aws ExpiredCredentials",
    "fault Aws Hangs",
    "fault Aws Refused",
    "fault Aws RequestLost",
    "fault Aws Slow",
    "hook already-over",
    "hook completed",
    "hook failed",
    "hook held",
    "hook left",
    "hook told ABANDON",
    "hook told CONTINUE",
    "managed by auto-mode",
    "managed by karpenter",
    "managed by managed-node-group",
    "managed by self-managed",
    "node claim taken over",
    "node claimed",
    "node claimed though cordoned",
    "node cordoned again",
    "node given back",
    "node out of service",
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
    "request delete",
    "request delete with less grace",
    "request evict",
    "request evict with less grace",
    "schedule fired",
    "step found-by-node",
    "watch ends",
    "watch is reset",
    "watch loses its place",
];

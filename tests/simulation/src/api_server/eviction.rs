//! Pods are requested to leave: by the eviction API, which asks their budgets, or by deletion (kubernetes,
//! `pkg/registry/core/pod/storage/eviction.go`, apiserver, `registry/rest/delete.go`).

use jiff::SignedDuration;
use serde_json::Value;

use super::answers::{self, Answer};
use super::pods::{Pod, PodDeletion};
use super::request::{Asked, Verb};
use crate::invariants::{Leave, Way};
use crate::world::World;

pub(crate) fn evict(world: &mut World, asked: &Asked) -> Answer {
    let options = &asked.body["deleteOptions"];
    let pod = match named(world, asked, options) {
        Ok(pod) => pod,
        Err(answer) => return *answer,
    };
    // Of one that is leaving already, or has not begun, no budget is asked.
    if pod.deletion.is_none() && pod.is_ready {
        let budgets = world.cluster.budgets.iter().filter(|(_, budget)| budget.app == pod.app);
        let names: Vec<String> = budgets.map(|(name, _)| name.clone()).collect();
        match &names[..] {
            [] => {}
            [name] => {
                let mut budget = world.cluster.budgets[name].clone();
                if budget.allowed == 0 {
                    let (wanted, healthy) = (budget.min_available, budget.healthy);
                    let why =
                        format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently");
                    return answers::blocked_by_budget(&pod.name, &why, 0);
                }
                budget.allowed -= 1;
                world.put_budget(name, budget);
            }
            _ => return answers::several_budgets(),
        }
    }
    begin(world, &pod.uid, options["gracePeriodSeconds"].as_u64());
    answers::success(201)
}

pub(crate) fn delete(world: &mut World, asked: &Asked) -> Answer {
    match named(world, asked, &asked.body) {
        Ok(pod) => {
            begin(world, &pod.uid, asked.body["gracePeriodSeconds"].as_u64());
            Answer::Says(200, world.last_seen(&pod))
        }
        Err(answer) => *answer,
    }
}

/// What is asked of a pod, if that is to leave.
pub(crate) fn leave(asked: &Asked) -> Option<Leave<'_>> {
    let (options, way) = match asked.verb {
        Verb::Evict => (&asked.body["deleteOptions"], Way::Evict),
        Verb::Delete => (&asked.body, Way::Delete),
        _ => return None,
    };
    let (uid, grace_s) = (options["preconditions"]["uid"].as_str(), options["gracePeriodSeconds"].as_u64());
    Some(Leave { name: &asked.name, uid, grace_s, way })
}

/// The pod by that name, if it is the one that is meant.
fn named(world: &World, asked: &Asked, options: &Value) -> Result<Pod, Box<Answer>> {
    let pod = world.cluster.pods.values().find(|pod| pod.name == asked.name);
    let Some(pod) = pod else { return Err(Box::new(answers::not_found("pods", &asked.name))) };
    match options["preconditions"]["uid"].as_str() {
        Some(uid) if uid != pod.uid => Err(Box::new(answers::other_uid(&pod.name, uid, &pod.uid))),
        _ => Ok(pod.clone()),
    }
}

/// A pod begins to leave, or leaves sooner; later than before it never does.
pub(crate) fn begin(world: &mut World, uid: &str, grace_s: Option<u64>) {
    let Some(mut pod) = world.cluster.pods.get(uid).cloned() else { return };
    let own = world.plan.apps[pod.app].grace_s;
    let now = world.second();
    let after = |from: jiff::Timestamp, s: u64| from + SignedDuration::from_secs(i64::try_from(s).unwrap_or(i64::MAX));
    let deletion = match (pod.deletion, grace_s) {
        (None, _) if pod.node.is_none() => return world.drop_pod(uid),
        (None, given) => PodDeletion { by: after(now, given.unwrap_or(own)), grace_s: given.unwrap_or(own) },
        (Some(deletion), Some(given)) if given < deletion.grace_s => {
            let since = deletion.by - SignedDuration::from_secs(i64::try_from(deletion.grace_s).unwrap_or(i64::MAX));
            let by = after(since, given);
            if by < now { PodDeletion { by: after(now, 1), grace_s: 1 } } else { PodDeletion { by, grace_s: given } }
        }
        (Some(_), _) => return,
    };
    if deletion.grace_s == 0 {
        return world.drop_pod(uid);
    }
    let (name, node) = (pod.name.clone(), pod.node.clone().unwrap_or_default());
    world.note(|| format!("pod {name} ({uid}) leaves {node} within {} s", deletion.grace_s));
    pod.deletion = Some(deletion);
    let app = pod.app;
    world.put_pod(pod);
    world.kubelet_stops(uid);
    world.replace_missing(app);
}

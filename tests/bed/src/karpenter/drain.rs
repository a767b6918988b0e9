//! How the pods of a node leave: evicted, and deleted when less than their grace is left until the deadline.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;
use tokio::time::sleep;

use crate::error::BedError;
use crate::node_claim::{NodeClaim, current_deadline};
use crate::pods;

/// Karpenter's queue asks again after 100 ms at first.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// The API server's default.
const GRACE_S: i64 = 30;

/// What is to be done with a pod.
#[derive(Debug, PartialEq, Eq)]
enum DrainStep {
    Evict,
    Delete { grace_s: u32 },
    Wait,
}

pub(super) async fn drain(client: &Client, claim: &NodeClaim, node: &str) -> Result<(), BedError> {
    loop {
        let waited_for: Vec<Pod> =
            pods::on_node(client, node).await?.into_iter().filter(|pod| !is_finished(pod)).collect();
        if waited_for.is_empty() {
            return Ok(());
        }
        let deadline = current_deadline(client, claim).await?;
        for pod in &waited_for {
            take(client, pod, step(pod, deadline, Timestamp::now())).await?;
        }
        sleep(ASK_AGAIN).await;
    }
}

fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Before the deadline each pod gets the whole of its grace, whatever its budget says.
fn step(pod: &Pod, deadline: Option<Timestamp>, now: Timestamp) -> DrainStep {
    let grace_s = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(GRACE_S);
    let exits = pod.metadata.deletion_timestamp.as_ref().map(|deleted| deleted.0);
    let too_late = deadline.is_some_and(|deadline| match exits {
        Some(exits) => exits > deadline,
        None => now > deadline - SignedDuration::from_secs(grace_s),
    });
    match (too_late, deadline, exits) {
        (true, Some(deadline), _) => {
            // Never 0, which would not wait for the pod to stop.
            let left = deadline.duration_since(now).as_secs().max(1);
            DrainStep::Delete { grace_s: u32::try_from(left).unwrap_or(u32::MAX) }
        }
        (_, _, None) => DrainStep::Evict,
        (_, _, Some(_)) => DrainStep::Wait,
    }
}

async fn take(client: &Client, pod: &Pod, step: DrainStep) -> Result<(), BedError> {
    let pods = Api::<Pod>::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let answer = match step {
        DrainStep::Wait => return Ok(()),
        DrainStep::Evict => evict(&pods, pod).await,
        DrainStep::Delete { grace_s } => {
            let preconditions = Some(kube::api::Preconditions { uid: pod.uid(), resource_version: None });
            let parameters =
                DeleteParams { grace_period_seconds: Some(grace_s), preconditions, ..DeleteParams::default() };
            pods.delete(&pod.name_any(), &parameters).await.map(drop)
        }
    };
    match answer {
        // It has gone, or a budget holds it: the next look tells.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 429 | 500) => Ok(()),
        answer => answer.map_err(BedError::kubernetes(format!("take pod {} off its node", pod.name_any()))),
    }
}

async fn evict(pods: &Api<Pod>, pod: &Pod) -> kube::Result<()> {
    let preconditions = Some(Preconditions { uid: pod.uid(), resource_version: None });
    let eviction = Eviction {
        metadata: ObjectMeta { name: Some(pod.name_any()), ..ObjectMeta::default() },
        delete_options: Some(DeleteOptions { preconditions, ..DeleteOptions::default() }),
    };
    let answer: kube::Result<Value> =
        pods.create_subresource("eviction", &pod.name_any(), &PostParams::default(), &eviction).await;
    answer.map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn pod(exits: Option<i64>) -> Pod {
        let exits = exits.map(|second| at(second).to_string());
        serde_json::from_value(json!({
            "metadata": {"name": "web", "deletionTimestamp": exits},
            "spec": {"containers": [], "terminationGracePeriodSeconds": 20},
        }))
        .unwrap()
    }

    #[test]
    fn a_pod_is_evicted_while_its_whole_grace_is_left_and_deleted_from_then_on() {
        assert_eq!(step(&pod(None), None, at(100)), DrainStep::Evict);
        assert_eq!(step(&pod(None), Some(at(120)), at(100)), DrainStep::Evict);
        assert_eq!(step(&pod(None), Some(at(120)), at(101)), DrainStep::Delete { grace_s: 19 });
        assert_eq!(step(&pod(None), Some(at(120)), at(500)), DrainStep::Delete { grace_s: 1 });
    }

    #[test]
    fn a_leaving_pod_is_told_again_only_if_it_would_leave_too_late() {
        assert_eq!(step(&pod(Some(120)), None, at(100)), DrainStep::Wait);
        assert_eq!(step(&pod(Some(120)), Some(at(120)), at(100)), DrainStep::Wait);
        assert_eq!(step(&pod(Some(120)), Some(at(110)), at(100)), DrainStep::Delete { grace_s: 10 });
    }
}

//! Drains that outlast their invocation: the function invokes itself with what is left.
//!
//! Reason: process.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use spillway_bed::audit::AuditLog;
use spillway_bed::aws::Hook;
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, receipt};

/// A pod that is still shutting down at the end of every invocation, unless the test ends it.
pub(crate) async fn deploy_slow_pod(stage: &Stage) {
    stage.deploy("slow", 1, PodShape::default().exits_after(Duration::from_mins(10)).grace(600)).await;
}

/// Ends the pods of the deployment `slow`, however long they would take.
pub(crate) async fn end_slow_pod(stage: &Stage) {
    let slow = ListParams::default().labels("app=slow").fields(&format!("spec.nodeName={}", stage.node.name));
    let pods: Api<Pod> = Api::namespaced(stage.world.admin(), &stage.name);
    pods.delete_collection(&DeleteParams::default().grace_period(0), &slow).await.expect("it ends");
}

/// Waits until the claim has passed from the first invocation to the next, and so many go on with it: each watches the
/// pod that shuts down, as the first did.
async fn until_taken_over(audit: &mut AuditLog, going_on: usize) {
    let claims = audit.wait_until("the claim to be taken over", Duration::from_secs(60), |requests| {
        let of = |verb: &str, resource: &str| {
            requests.iter().filter(|r| r.verb == verb && r.resource == resource && r.code == Some(200)).count()
        };
        of("patch", "nodes") == 2 && of("watch", "pods") > going_on
    });
    claims.await.unwrap_or_else(|error| panic!("{error}"));
}

fn ending(outcome: &Outcome) -> String {
    receipt(outcome)["ending"].as_str().unwrap_or_default().to_owned()
}

/// What Auto Scaling was told in the end, and how often it was told anything.
async fn told(stage: &Stage) -> (Option<String>, usize) {
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    let completions = stage.aws_calls().await.into_iter().filter(|call| call.ends_with("CompleteLifecycleAction"));
    (instance.actions[0].result.clone(), completions.count())
}

#[tokio::test]
async fn a_continuation_that_is_killed_is_gone_on_with_by_lambdas_retry() {
    let stage = Stage::set_in_group("killed-later", Hook::terminate("spillway")).await;
    let mut stage = stage.with_invocations_of(Duration::from_mins(1)).await;
    deploy_slow_pod(&stage).await;
    let first = stage.lambda.invoke(stage.terminate().await).await;
    assert_eq!((ending(&first), &receipt(&first)["hook"]["state"]), ("continued".to_owned(), &json!("held")));
    let (lambda, continuation) = (stage.lambda.clone(), stage.continuation().await);
    let delivery = tokio::spawn(async move { lambda.invoke_async(continuation).await });
    until_taken_over(&mut stage.audit, 1).await;
    stage.lambda.kill();
    end_slow_pod(&stage).await;

    let delivery = delivery.await.expect("no panic").expect("the queue works");

    assert_eq!(delivery.failed.len(), 1);
    assert_eq!(ending(&delivery.last), "drained", "{delivery:#?}");
    let earlier = &receipt(&delivery.last)["earlier"];
    assert_eq!((&earlier[0]["request_id"], &earlier[0]["pods"]), (&json!(first.request_id), &json!({"remaining": 1})));
    assert_eq!(told(&stage).await, (Some("CONTINUE".to_owned()), 1));
}

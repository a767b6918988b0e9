//! Drains that outlast an invocation: the function invokes itself for the rest.
//!
//! Reason: process.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use spillway_bed::aws::Hook;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, ended, receipt};

#[tokio::test]
async fn killed_continuation_is_retried_and_completes_the_hook() {
    let stage = Stage::set_in_group("killed-later", Hook::terminate("spillway")).await;
    let stage = stage.with_invocations_of(Duration::from_mins(1)).await;
    // The pod outlasts every invocation, until the test ends it.
    stage.deploy("slow", 1, PodShape::default().exits_after(Duration::from_mins(10)).grace(600)).await;
    let first = stage.lambda.invoke(stage.terminate().await).await;
    assert_eq!((&*ended(&first).0, &receipt(&first)["hook"]["state"]), ("continued", &json!("held")));
    let (lambda, continuation) = (stage.lambda.clone(), stage.continuation().await);
    let delivery = tokio::spawn(async move { lambda.invoke_async(continuation).await });
    // The continuation has taken over the claim, and watches the pod as the first invocation did.
    let taken_over = |verb: &'static str, resource: &'static str, more_than: usize| {
        move |made: &[spillway_bed::audit::Request]| {
            made.iter().filter(|r| r.verb == verb && r.resource == resource && r.code == Some(200)).count() > more_than
        }
    };
    stage.until_requests("a second claim", taken_over("patch", "nodes", 1)).await;
    stage.until_requests("a second watch", taken_over("watch", "pods", 1)).await;
    stage.lambda.kill();
    let slow = ListParams::default().labels("app=slow").fields(&format!("spec.nodeName={}", stage.node.name));
    let pods: Api<Pod> = Api::namespaced(stage.client(), &stage.name);
    pods.delete_collection(&DeleteParams::default().grace_period(0), &slow).await.expect("the pod ends");

    let delivery = delivery.await.expect("no panic").expect("the queue works");

    assert_eq!(delivery.failed.len(), 1);
    assert_eq!(ended(&delivery.last).0, "drained", "{delivery:#?}");
    let earlier = &receipt(&delivery.last)["earlier"];
    assert_eq!((&earlier[0]["request_id"], &earlier[0]["pods"]), (&json!(first.request_id), &json!({"remaining": 1})));
    let completions = stage.aws_calls().await.into_iter().filter(|call| call.ends_with("CompleteLifecycleAction"));
    assert_eq!((stage.action().await.result.as_deref(), completions.count()), (Some("CONTINUE"), 1));
}

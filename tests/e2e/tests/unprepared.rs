//! A cluster that nobody has prepared: the doctor says what to apply.
//!
//! What is taken away is everybody's in this world, so this is the only test in it.

use std::time::{Duration, Instant};

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use spillway_e2e::{function, world};

#[tokio::test]
async fn cluster_without_rights_gets_the_command_that_enrolls_it() {
    let world = world().await;
    let lambda = function(world, "unprepared", &[]).await;
    let order = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": world.cluster}});
    let bindings = Api::<ClusterRoleBinding>::all(world.admin());
    bindings.delete("spillway", &DeleteParams::default()).await.expect("it was applied");

    // The API server's cache has the deletion a moment later.
    let begin = Instant::now();
    let report = loop {
        let report = lambda.invoke(&order).await.result.expect("the doctor answers");
        let no_rights = finding(&report, "kubernetes-rights").is_some_and(|found| found["id"] == "no-rights");
        if no_rights || begin.elapsed() > Duration::from_mins(1) {
            break report;
        }
    };

    let rights = finding(&report, "kubernetes-rights").expect("as waited for");
    assert_eq!((&rights["id"], &rights["severity"]), (&json!("no-rights"), &json!("fail")), "{report:#}");
    let enroll = format!("tools/spillway enroll --stack spillway --region us-east-1 --cluster {}", world.cluster);
    assert_eq!(rights["command"], json!(enroll));
    assert_eq!(report["status"], "fail");
}

/// The first finding of a check.
fn finding<'a>(report: &'a Value, check: &str) -> Option<&'a Value> {
    let check = report["checks"].as_array()?.iter().find(|made| made["id"] == check)?;
    check["findings"].as_array()?.first()
}

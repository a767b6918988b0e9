//! A cluster that nobody has prepared: the doctor says what to apply.
//!
//! What is taken away is everybody's in this world, so this is the only test in it.

use std::time::{Duration, Instant};

use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use spillway_e2e::{function, world};

#[tokio::test]
async fn a_cluster_without_rights_and_flow_control_is_told_to_apply_them() {
    let world = world().await;
    let lambda = function(world, "unprepared", &[]).await;
    let order = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": world.cluster}});
    let (bindings, schemas) = (Api::<ClusterRoleBinding>::all(world.admin()), Api::<FlowSchema>::all(world.admin()));
    let delete = DeleteParams::default();
    bindings.delete("spillway", &delete).await.expect("it was applied");
    for schema in ["spillway", "spillway-claims"] {
        schemas.delete(schema, &delete).await.expect("it was applied");
    }

    // Both reach the API server's caches a moment later, one right after the other.
    let begin = Instant::now();
    let report = loop {
        let report = lambda.invoke(&order).await.result.expect("the doctor answers");
        let no_rights = finding(&report, "kubernetes-rights").is_some_and(|found| found["id"] == "no-rights");
        if no_rights && finding(&report, "flow-control").is_some() || begin.elapsed() > Duration::from_mins(1) {
            break report;
        }
    };

    let rights = finding(&report, "kubernetes-rights").expect("as waited for");
    assert_eq!((&rights["id"], &rights["severity"]), (&json!("no-rights"), &json!("fail")), "{report:#}");
    let enroll = format!("tools/enroll --stack spillway --region us-east-1 --cluster {}", world.cluster);
    assert_eq!(rights["command"], json!(enroll));
    let flow_control = finding(&report, "flow-control").expect("as waited for");
    assert_eq!((&flow_control["id"], &flow_control["severity"]), (&json!("no-flow-control"), &json!("warn")));
    assert_eq!(flow_control["command"], json!(format!("{enroll} --with flow-control.yaml")));
    assert_eq!(report["status"], "fail");
}

/// The first finding of a check.
fn finding<'a>(report: &'a Value, check: &str) -> Option<&'a Value> {
    let check = report["checks"].as_array()?.iter().find(|made| made["id"] == check)?;
    check["findings"].as_array()?.first()
}

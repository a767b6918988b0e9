//! A cluster without Spillway's rights: the doctor names the command that enrolls it.
//!
//! The test deletes an object of the whole world, so it is the only one of this program.

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use spillway_e2e::{answer, function, until, world};

#[tokio::test]
async fn cluster_without_rights_gets_the_command_that_enrolls_it() {
    let world = world().await;
    let lambda = function(world, "unprepared", &[]).await;
    let order = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": world.cluster}});
    let bindings = Api::<ClusterRoleBinding>::all(world.admin());
    bindings.delete("spillway", &DeleteParams::default()).await.expect("the binding existed");

    // The authorizer's cache has the deletion a moment later.
    let examine = async || answer(&lambda.invoke(&order).await).clone();
    until("missing rights", async || finding(&examine().await)["id"] == "no-rights").await;

    let report = examine().await;
    let rights = finding(&report);
    assert_eq!((&rights["id"], &rights["severity"]), (&json!("no-rights"), &json!("fail")), "{report:#}");
    let enroll = format!("tools/spillway enroll --stack spillway --region us-east-1 --cluster {}", world.cluster);
    assert_eq!(rights["command"], json!(enroll));
    assert_eq!(report["status"], "fail");
}

/// The first finding of the check of rights, or null.
fn finding(report: &Value) -> &Value {
    let mut checks = report["checks"].as_array().into_iter().flatten();
    checks.find(|check| check["id"] == "kubernetes-rights").map_or(&Value::Null, |check| &check["findings"][0])
}

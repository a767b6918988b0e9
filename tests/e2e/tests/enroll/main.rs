//! `tools/spillway enroll` on unprepared clusters of each authentication mode, with the real AWS CLI and kubectl, signed in through
//! the clusters' authenticators, under IAM.
//!
//! The test changes whole clusters, so it is the only one of this program.

mod fleet;
mod objects;

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::{Cluster, NodeOptions};
use spillway_e2e::{answer, notice, the_one};

use fleet::{FINE, FIRST, Fleet, GROUP_TAG, MANAGED, NEXT, NOT_FINE, STACK_OF_ROLES, STAYS};
use objects::assert_same;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn enrolled_clusters_drain_and_are_restored_by_remove() {
    let mut fleet = Fleet::set().await;
    let next = fleet.cluster(NEXT).clone();
    fleet.aws.hide_cluster(NEXT).await.expect("EKS had it");
    let nothing = fleet.everything().await;
    stack_with_handed_in_roles_drains_and_leaves_them(&mut fleet).await;
    assert_same(&fleet.everything().await, &nothing);
    fleet.deploy().await;
    let before = fleet.snapshot().await;

    first_clusters_are_enrolled(&fleet).await;
    later_cluster_is_found_by_the_doctor(&fleet, &next).await;
    fleet.assert_drain(&[("red", "red-a"), ("blue", "blue-a"), ("green", "green-a"), (NEXT, "old-a")]).await;
    outdated_objects_are_updated(&fleet).await;
    remove_restores_the_clusters(&fleet, &before).await;
    fleet.sam_delete().await;
    assert_same(&fleet.everything().await, &nothing);
}

/// A stack with `RoleArns` makes no role, drains by those of the other stack alone, and leaves them when it is deleted.
async fn stack_with_handed_in_roles_drains_and_leaves_them(fleet: &mut Fleet) {
    let function = fleet.lambda.clone();
    fleet.deploy_with_roles().await;
    let before = fleet.snapshot().await;
    let run = fleet.enroll(&["--cluster", "red", "--groups"]).await;
    assert_eq!(run.code, FINE, "{run:#?}");
    fleet.assert_drains("red", "handed-in", NodeOptions::in_group("red-a")).await;
    let removed = fleet.enroll(&["--cluster", "red", "--groups", "--remove"]).await;
    assert_eq!(removed.code, FINE, "{removed:#?}");
    assert_same(&fleet.snapshot().await, &before);
    fleet.sam_delete().await;
    let left = fleet.aws.left().await.expect("the account answers");
    assert!(left["roles"].to_string().contains("spillway-roles-SchedulesRole"), "{left:#}");
    fleet.aws.delete_stack(STACK_OF_ROLES).await.expect("the stack existed");
    fleet.lambda = function;
}

async fn first_clusters_are_enrolled(fleet: &Fleet) {
    let first = fleet.enroll(&["--all", "--groups"]).await;
    assert_eq!(first.code, FINE, "{first:#?}");
    for cluster in FIRST {
        let row = first.of(cluster);
        assert_eq!(
            (&row["access"], &row["rights"], &row["groups_without_hook"]),
            (&json!("done"), &json!("done"), &json!([]))
        );
        let verdict = row["doctor"].as_str().unwrap_or_default();
        assert!(verdict.starts_with("ok") || verdict.starts_with("warn"), "{first:#?}");
    }
    assert_eq!(first.of("red")["groups_with_hook"], json!(["red-a", "red-b", STAYS]));
    let managed = fleet.aws.group(MANAGED).await.expect("the group exists");
    assert_eq!(managed["hooks"], json!([]), "EKS drains its nodes");
}

async fn later_cluster_is_found_by_the_doctor(fleet: &Fleet, next: &Cluster) {
    let ca = std::fs::read(&next.ca).expect("its authority");
    let ca = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, ca);
    fleet.aws.put_cluster(NEXT, &next.api_server, &ca, Some("CONFIG_MAP")).await.expect("EKS has it");
    assert!(fleet.doctor_finds(NEXT, "no-access-entry").await);

    let before = fleet.snapshot().await;
    let plan = fleet.enroll(&["--cluster", NEXT, "--groups", "--plan"]).await;
    // An administrator writes aws-auth, and a hook follows when the function can drain.
    assert_eq!(plan.code, NOT_FINE);
    let (tag, hook) =
        (format!("{NEXT} tag {GROUP_TAG} of group old-a"), format!("{NEXT} hook spillway of group old-a"));
    assert_eq!(plan.steps("told"), [format!("{NEXT} line in aws-auth"), tag.clone(), hook.clone()]);
    assert_eq!(plan.steps("to do"), ["old ClusterRole spillway", "old ClusterRoleBinding spillway"]);
    assert_same(&fleet.snapshot().await, &before);

    let commands = &plan.of(NEXT)["steps"][0]["commands"];
    fleet.put_aws_auth(commands[1].as_str().expect("the line")).await;
    let run = fleet.enroll(&["--all", "--groups"]).await;
    assert_eq!(run.code, FINE, "{run:#?}");
    // A second run changes nothing in the other clusters.
    let mut done = plan.steps("to do");
    done.extend([tag, hook]);
    assert_eq!(run.steps("done"), done);
    assert!(!fleet.doctor_finds(NEXT, "not-in-group").await && !fleet.doctor_finds(NEXT, "no-access-entry").await);
}

/// Objects of an older version are updated. An access entry without its group, and a change of another field manager, are left to
/// an administrator.
async fn outdated_objects_are_updated(fleet: &Fleet) {
    let entries = fleet.aws.access_entries("red").await.expect("entries");
    let principal = entries[0]["principalArn"].as_str().expect("a role");
    let empty =
        format!("aws eks update-access-entry --cluster-name red --kubernetes-groups [] --principal-arn {principal}");
    assert!(!fleet.runs("spillway-enroller", &empty).await, "IAM has no condition on groups");
    assert!(fleet.runs("administrator", &empty).await);
    let roles = Api::<ClusterRole>::all(fleet.cluster("red").admin());
    let role = roles.get("spillway").await.expect("the role exists");
    let (wanted, less) = (json!(role.rules), json!([role.rules.as_ref().expect("rules")[0]]));
    let applied = PatchParams::apply("spillway-enroll").force();
    let of_rules = |rules: &Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "spillway", "labels": role.labels()}, "rules": rules})
    };
    roles.patch("spillway", &applied, &Patch::Apply(of_rules(&less))).await.expect("an older version");
    let run = fleet.enroll(&["--cluster", "red", "--with", "flow-control.yaml"]).await;
    assert_eq!((run.code, run.steps("told")), (NOT_FINE, vec!["red access entry".to_owned()]), "{run:#?}");
    assert!(run.steps("done").contains(&"red ClusterRole spillway".to_owned()), "{run:#?}");
    assert!(run.steps("done").contains(&"red FlowSchema spillway".to_owned()), "{run:#?}");
    let steps = run.of("red")["steps"].as_array().expect("steps");
    let entry = steps.iter().find(|step| step["what"] == "access entry").expect("its step");
    assert!(fleet.runs("administrator", entry["commands"][0].as_str().expect("a command")).await);
    let run = fleet.enroll(&["--cluster", "red", "--with", "flow-control.yaml"]).await;
    assert_eq!(run.code, FINE, "{run:#?}");
    assert_eq!(json!(roles.get("spillway").await.expect("the role exists").rules), wanted);

    let by_hand = PatchParams { field_manager: Some("hand-edited".to_owned()), ..PatchParams::default() };
    roles.patch("spillway", &by_hand, &Patch::Merge(json!({"rules": less}))).await.expect("the role changes");
    // Objects of deploy/optional/ are kept up to date without their names.
    let run = fleet.enroll(&["--cluster", "red", "--plan"]).await;
    assert_eq!((run.code, run.steps("told")), (NOT_FINE, vec!["red ClusterRole spillway".to_owned()]), "{run:#?}");
    assert!(run.of("red")["steps"].to_string().contains("hand-edited"), "{run:#?}");
    assert!(run.steps("there").contains(&"red FlowSchema spillway".to_owned()), "{run:#?}");
    // Back to the first state.
    roles.patch("spillway", &applied, &Patch::Apply(of_rules(&wanted))).await.expect("the role changes");
}

async fn remove_restores_the_clusters(fleet: &Fleet, before: &Value) {
    // A node that stays, and a node that drains.
    let rebalance = notice("rebalance-recommendation", &fleet.stays.instance_id);
    let notice = the_one(fleet.aws.send_notice(&rebalance).await.expect("the bus takes it"));
    let cordoned = fleet.lambda.invoke(notice).await;
    assert_eq!(answer(&cordoned)["ending"], "done", "{cordoned:#?}");
    let goes = fleet.cluster("red").add_node(NodeOptions::in_group("red-b")).await.expect("the node joins");
    let notice = the_one(fleet.aws.terminate(&goes.instance_id).await.expect("Auto Scaling terminates"));

    let waits = fleet.enroll(&["--all", "--remove"]).await;
    assert_eq!(waits.code, NOT_FINE);
    let left = waits.steps("told");
    for what in
        ["red hook spillway of group red-b", "red ClusterRole spillway", "red access entry", "old line in aws-auth"]
    {
        assert!(left.contains(&what.to_owned()), "{what}: {waits:#?}");
    }
    assert!(waits.steps("done").contains(&format!("red node {}", fleet.stays.name)), "{waits:#?}");
    // The drain has its rights until its hook is gone.
    let drained = fleet.lambda.invoke(notice).await;
    assert_eq!(answer(&drained)["ending"], "drained", "{drained:#?}");

    fleet.put_aws_auth("").await;
    let removed = fleet.enroll(&["--all", "--remove"]).await;
    assert_eq!((removed.code, removed.steps("told")), (FINE, Vec::new()), "{removed:#?}");
    assert_same(&fleet.snapshot().await, before);
}

use serde_json::{Value, json};

use spillway_notice::Deadline;

use super::*;
use crate::test_support::{maintenance, notice};

const RUNS: UncordonCause = UncordonCause::Stop { runs_since: Timestamp::UNIX_EPOCH };

/// Ready node with our cordon and our annotation for a rebalance recommendation.
fn node() -> Value {
    let taints = vec!["spillway/rebalance-recommendation=e-1:NoSchedule".to_owned()];
    let annotation = ClaimAnnotation { taints, ..ClaimAnnotation::new("e-1", "r-1", Kind::Rebalance) };
    json!({
        "metadata": {
            "name": "n-1",
            "resourceVersion": "7",
            "annotations": {"spillway/claim": annotation.text()},
            "labels": {labels::EXCLUDED: "spillway"},
            "managedFields": [
                {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:spec": {"f:providerID": {}}}},
                {"manager": "spillway", "operation": "Update", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}},
            ],
        },
        "spec": {
            "unschedulable": true,
            "taints": [
                {"key": "team", "value": "shop", "effect": "NoSchedule"},
                {"key": "spillway/rebalance-recommendation", "value": "e-1", "effect": "NoSchedule"},
                {"key": "spillway/rebalance-recommendation", "value": "e-0", "effect": "NoExecute"},
            ],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": boot("b-1")},
    })
}

fn boot(id: &str) -> Value {
    let names = ["architecture", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion"];
    let more = ["machineID", "operatingSystem", "osImage", "systemUUID"];
    let mut info: serde_json::Map<_, _> =
        names.iter().chain(&more).map(|name| ((*name).to_owned(), json!(""))).collect();
    info.insert("bootID".to_owned(), json!(id));
    info.into()
}

/// The node with a changed annotation.
fn annotated(change: impl FnOnce(&mut ClaimAnnotation)) -> Value {
    let mut node = node();
    let mut annotation =
        ClaimAnnotation::read(node["metadata"]["annotations"]["spillway/claim"].as_str().unwrap()).unwrap();
    change(&mut annotation);
    node["metadata"]["annotations"]["spillway/claim"] = json!(annotation.text());
    node
}

fn claimed_for(notice: &str) -> Value {
    annotated(|annotation| notice.clone_into(&mut annotation.notice))
}

fn for_maintenance() -> Value {
    annotated(|annotation| {
        "scheduled maintenance".clone_into(&mut annotation.notice);
        annotation.maintenance = Some("m-1".to_owned());
        annotation.boot = Some("b-1".to_owned());
    })
}

fn decided(node: Value, over: &UncordonCause) -> (Vec<String>, UncordonResult) {
    let (patch, undone) = decide(&serde_json::from_value(node).unwrap(), over);
    let operations = patch.into_iter().flat_map(|patch| patch.0);
    (operations.map(|operation| serde_json::to_string(&operation).unwrap()).collect(), undone)
}

/// The node with another value at the JSON pointer's place.
fn with(mut node: Value, place: &str, value: Value) -> Value {
    let (parent, key) = place.rsplit_once('/').unwrap();
    node.pointer_mut(parent).unwrap()[key] = value;
    node
}

fn unclaimed() -> Value {
    with(node(), "/metadata/annotations", json!({}))
}

fn given_back() -> UncordonResult {
    UncordonResult::GivenBack { node: "n-1".to_owned() }
}

fn left_alone(why: CordonOwner) -> UncordonResult {
    UncordonResult::CordonKept { node: "n-1".to_owned(), why }
}

fn not_ours() -> UncordonResult {
    UncordonResult::NotOurs { node: "n-1".to_owned() }
}

#[test]
fn our_marks_are_removed_and_nothing_else() {
    let (patch, undone) = decided(node(), &UncordonCause::Rebalance);
    assert_eq!(undone, given_back());
    insta::assert_snapshot!(patch.join("\n"));
    let foreign_label = with(node(), "/metadata/labels", json!({labels::EXCLUDED: "karpenter"}));
    assert!(!decided(foreign_label, &UncordonCause::Rebalance).0.join("\n").contains("labels"));
}

#[test]
fn foreign_cordon_stays_and_our_marks_go() {
    let owned_by = |managers: &[&str]| {
        let fields = json!({"f:spec": {"f:unschedulable": {}}});
        let entry = |manager: &&str| json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
        with(node(), "/metadata/managedFields", managers.iter().map(entry).collect())
    };
    for (node, owner) in [
        (annotated(|annotation| annotation.cordoned = false), CordonOwner::CordonedBefore),
        (owned_by(&["kubectl"]), CordonOwner::CordonedSince),
        (owned_by(&["spillway", "gitops"]), CordonOwner::CordonedSince),
        // The API server merges the oldest of many managers into this one.
        (owned_by(&["ancient-changes"]), CordonOwner::CordonedSince),
        (owned_by(&[]), CordonOwner::CordonedSince),
        (with(node(), "/spec/unschedulable", json!(false)), CordonOwner::Uncordoned),
    ] {
        let (patch, undone) = decided(node, &UncordonCause::Rebalance);
        let patch = patch.join("\n");
        assert_eq!(undone, left_alone(owner), "{patch}");
        let are_marks_removed = patch.contains("claim") && patch.contains("/spec/taints/1");
        assert!(are_marks_removed && !patch.contains("unschedulable"), "{owner:?}: {patch}");
    }
}

#[test]
fn node_is_uncordoned_only_for_the_cause_of_its_claim() {
    let over = |id: &str| UncordonCause::Maintenance(maintenance(id));
    let claimed_since = |since: &str| {
        annotated(|annotation| {
            "spot interruption".clone_into(&mut annotation.notice);
            annotation.since = Some(since.parse().unwrap());
        })
    };
    for (node, over) in [
        (claimed_for("spot interruption"), RUNS),
        // Notices are dated to the second.
        (claimed_since("1970-01-01T00:00:00Z"), RUNS),
        (claimed_for("instance stopping"), RUNS),
        (claimed_for("return to warm pool"), RUNS),
        (for_maintenance(), RUNS),
        (for_maintenance(), over("m-1")),
        (claimed_for("return to warm pool"), UncordonCause::WarmPool),
        (claimed_for("root volume replacement"), UncordonCause::RootVolume),
    ] {
        assert_eq!(decided(node, &over).1, given_back(), "{over:?}");
    }
    for (node, over) in [
        (claimed_for("spot interruption"), UncordonCause::Rebalance),
        (claimed_since("1970-01-01T00:00:01Z"), RUNS),
        (claimed_for("terminate lifecycle action"), RUNS),
        (claimed_for("instance stopping"), UncordonCause::WarmPool),
        (claimed_for("root volume replacement"), RUNS),
        (for_maintenance(), over("m-2")),
        (for_maintenance(), UncordonCause::Reboot(maintenance("m-2"))),
        (claimed_for("a kind of a later version"), RUNS),
    ] {
        let (patch, undone) = decided(node, &over);
        assert!(patch.is_empty() && matches!(undone, UncordonResult::Held { .. }), "{over:?}: {undone:?}");
    }
}

#[test]
fn unclaimed_opted_out_or_unready_node_is_unchanged() {
    let opted_out = with(node(), "/metadata/labels", json!({labels::IGNORE: ""}));
    let root_volume = annotated(|annotation| {
        annotation.notice = "root volume replacement".to_owned();
        annotation.boot = Some("b-1".to_owned());
    });
    let reboot = UncordonCause::Reboot(maintenance("m-1"));
    let not_yet = |why| UncordonResult::NotReadyYet { node: "n-1".to_owned(), why };
    let unready = json!([{"type": "Ready", "status": "Unknown"}]);
    for (node, cause, result) in [
        (unclaimed(), &UncordonCause::Rebalance, not_ours()),
        (opted_out, &UncordonCause::Rebalance, UncordonResult::OptedOut { node: "n-1".to_owned() }),
        (with(node(), "/status/conditions", unready), &UncordonCause::Rebalance, not_yet(NotYet::NotReady)),
        (for_maintenance(), &reboot, not_yet(NotYet::NotRebooted)),
        (root_volume.clone(), &UncordonCause::RootVolume, not_yet(NotYet::NotRebooted)),
    ] {
        assert_eq!(decided(node, cause), (vec![], result));
    }
    for (node, cause) in [(for_maintenance(), &reboot), (root_volume, &UncordonCause::RootVolume)] {
        assert_eq!(decided(with(node, "/status/nodeInfo", boot("b-2")), cause).1, given_back());
    }
}

#[test]
fn out_of_service_taint_goes_once_the_instance_runs() {
    let out_of_service =
        json!([{"key": "node.kubernetes.io/out-of-service", "value": "spillway", "effect": "NoExecute"}]);
    let tainted = |node| with(node, "/spec/taints", out_of_service.clone());
    for (node, cause) in [
        (unclaimed(), RUNS),
        (claimed_for("terminate lifecycle action"), RUNS),
        (claimed_for("rebalance recommendation"), UncordonCause::Rebalance),
    ] {
        let (patch, _) = decided(tainted(node), &cause);
        assert!(patch[1].contains("/spec/taints/0"), "{patch:?}");
        assert!(patch.len() == 2 || cause == UncordonCause::Rebalance, "the claim stays: {patch:?}");
    }
    let foreign = json!([{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]);
    assert_eq!(decided(with(unclaimed(), "/spec/taints", foreign), &RUNS).1, not_ours());
}

/// The node was never out of use, so it need not be Ready.
#[test]
fn taint_of_a_waiting_node_goes_with_its_maintenance() {
    let planned = json!({"taints": [{"key": "spillway/planned", "value": "e-1", "effect": "PreferNoSchedule"}]});
    let waiting = with(with(unclaimed(), "/spec", planned), "/status/conditions", json!([]));
    for over in [UncordonCause::Maintenance(maintenance("m-1")), UncordonCause::Reboot(maintenance("m-1"))] {
        let (patch, result) = decided(waiting.clone(), &over);
        assert_eq!(patch[1..], [r#"{"op":"remove","path":"/spec/taints/0"}"#.to_owned()]);
        assert_eq!(result, not_ours());
    }
}

#[test]
fn cause_follows_from_the_notice_or_its_check() {
    let of = |kind| {
        let maintenance = matches!(kind, Kind::Maintenance | Kind::MaintenanceOver).then(|| maintenance("m-1"));
        let notice = Notice { maintenance, ..notice(kind, Deadline::Unknown) };
        [UncordonCause::of_notice(&notice), UncordonCause::of_check(&notice)]
    };
    let over = || Some(UncordonCause::Maintenance(maintenance("m-1")));
    assert_eq!(of(Kind::MaintenanceOver), [over(), over()]);
    assert_eq!(of(Kind::Maintenance), [over(), Some(UncordonCause::Reboot(maintenance("m-1")))]);
    assert_eq!(of(Kind::Running), [Some(RUNS), Some(RUNS)]);
    assert_eq!(of(Kind::LaunchFromWarmPool), [Some(UncordonCause::WarmPool), Some(UncordonCause::WarmPool)]);
    assert_eq!(of(Kind::RootVolumeReplaced), [Some(UncordonCause::RootVolume), Some(UncordonCause::RootVolume)]);
    assert_eq!(of(Kind::Rebalance), [None, Some(UncordonCause::Rebalance)]);
    assert_eq!(of(Kind::ReplaceRootVolume), [None, Some(UncordonCause::RootVolume)]);
    assert_eq!(of(Kind::Spot), [None, None]);
}

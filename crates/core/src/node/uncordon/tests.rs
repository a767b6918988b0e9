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

fn given_back() -> UncordonResult {
    UncordonResult::GivenBack { node: "n-1".to_owned() }
}

fn left_alone(why: CordonOwner) -> UncordonResult {
    UncordonResult::LeftAlone { node: "n-1".to_owned(), why }
}

#[test]
fn our_marks_are_removed_and_nothing_else() {
    let (patch, undone) = decided(node(), &UncordonCause::Rebalance);
    assert_eq!(undone, given_back());
    insta::assert_snapshot!(patch.join("\n"));
}

#[test]
fn foreign_cordon_stays_and_our_marks_go() {
    let (patch, undone) = decided(annotated(|annotation| annotation.cordoned = false), &UncordonCause::Rebalance);
    assert_eq!(undone, left_alone(CordonOwner::CordonedBefore));
    let patch = patch.join("\n");
    assert!(!patch.contains("unschedulable") && patch.contains("claim") && patch.contains("/spec/taints/1"), "{patch}");

    let owned_by = |managers: &[&str]| {
        let mut node = node();
        let fields = json!({"f:spec": {"f:unschedulable": {}}});
        let entry = |manager: &&str| json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
        node["metadata"]["managedFields"] = managers.iter().map(entry).collect();
        decided(node, &UncordonCause::Rebalance)
    };
    // The API server merges the oldest of many managers into `ancient-changes`.
    for managers in [vec!["kubectl"], vec!["spillway", "gitops"], vec!["ancient-changes"], vec![]] {
        let (patch, undone) = owned_by(&managers);
        assert_eq!(undone, left_alone(CordonOwner::CordonedSince), "{managers:?}");
        assert!(!patch.join("\n").contains("unschedulable"), "{managers:?}");
    }
}

#[test]
fn uncordoned_node_loses_our_marks() {
    let mut node = node();
    node["spec"]["unschedulable"] = json!(false);
    let (patch, undone) = decided(node, &UncordonCause::Rebalance);
    assert_eq!(undone, left_alone(CordonOwner::Uncordoned));
    assert!(!patch.join("\n").contains("unschedulable"), "{patch:?}");
}

#[test]
fn foreign_label_stays() {
    let mut node = node();
    node["metadata"]["labels"][labels::EXCLUDED] = json!("karpenter");
    let (patch, _) = decided(node, &UncordonCause::Rebalance);
    assert!(!patch.join("\n").contains("labels"), "{patch:?}");
}

#[test]
fn node_is_uncordoned_only_for_the_cause_of_its_claim() {
    let over = |id: &str| UncordonCause::Maintenance(maintenance(id));
    for (node, over) in [
        (claimed_for("spot interruption"), RUNS),
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
        (claimed_for("terminate lifecycle action"), RUNS),
        (claimed_for("instance stopping"), UncordonCause::WarmPool),
        (claimed_for("root volume replacement"), RUNS),
        (for_maintenance(), over("m-2")),
        (for_maintenance(), UncordonCause::Reboot(maintenance("m-2"))),
        (claimed_for("what a later version knows"), RUNS),
    ] {
        let (patch, undone) = decided(node, &over);
        assert!(patch.is_empty() && matches!(undone, UncordonResult::Held { .. }), "{over:?}: {undone:?}");
    }
}

#[test]
fn claim_made_after_the_instance_ran_stays() {
    let claimed = |since: &str| {
        annotated(|annotation| {
            "spot interruption".clone_into(&mut annotation.notice);
            annotation.since = Some(since.parse().unwrap());
        })
    };
    assert_eq!(decided(claimed("1970-01-01T00:00:00Z"), &RUNS).1, given_back(), "notices are dated to the second");
    let (patch, undone) = decided(claimed("1970-01-01T00:00:01Z"), &RUNS);
    assert!(patch.is_empty() && matches!(undone, UncordonResult::Held { .. }), "{undone:?}");
}

#[test]
fn unclaimed_or_opted_out_node_is_unchanged() {
    let mut unclaimed = node();
    unclaimed["metadata"]["annotations"] = json!({});
    let not_ours = UncordonResult::NotOurs { node: "n-1".to_owned() };
    assert_eq!(decided(unclaimed, &UncordonCause::Rebalance), (vec![], not_ours));
    let mut opted_out = node();
    opted_out["metadata"]["labels"][labels::IGNORE] = json!("");
    let result = UncordonResult::OptedOut { node: "n-1".to_owned() };
    assert_eq!(decided(opted_out, &UncordonCause::Rebalance), (vec![], result));
}

#[test]
fn node_is_uncordoned_once_ready_and_rebooted() {
    let not_yet = |why| (vec![], UncordonResult::NotReadyYet { node: "n-1".to_owned(), why });
    let mut node = node();
    node["status"]["conditions"][0]["status"] = json!("Unknown");
    assert_eq!(decided(node, &UncordonCause::Rebalance), not_yet(NotYet::NotReady));

    let reboot = UncordonCause::Reboot(maintenance("m-1"));
    let mut node = for_maintenance();
    assert_eq!(decided(node.clone(), &reboot), not_yet(NotYet::NotRebooted));
    node["status"]["nodeInfo"] = boot("b-2");
    assert_eq!(decided(node, &reboot).1, given_back());

    let mut node = annotated(|annotation| {
        annotation.notice = "root volume replacement".to_owned();
        annotation.boot = Some("b-1".to_owned());
    });
    assert_eq!(decided(node.clone(), &UncordonCause::RootVolume), not_yet(NotYet::NotRebooted));
    node["status"]["nodeInfo"] = boot("b-2");
    assert_eq!(decided(node, &UncordonCause::RootVolume).1, given_back());
}

#[test]
fn out_of_service_taint_goes_once_the_instance_runs() {
    let out_of_service =
        json!({"key": "node.kubernetes.io/out-of-service", "value": "spillway", "effect": "NoExecute"});
    let mut unmarked = node();
    unmarked["metadata"]["annotations"] = json!({});
    unmarked["spec"]["taints"] = json!([out_of_service]);
    let mut held = claimed_for("terminate lifecycle action");
    held["spec"]["taints"] = json!([out_of_service]);
    for node in [unmarked, held] {
        let (patch, _) = decided(node, &RUNS);
        assert_eq!(patch.len(), 2, "{patch:?}");
        assert!(patch[1].contains("/spec/taints/0"), "{patch:?}");
    }
    let mut others = node();
    others["metadata"]["annotations"] = json!({});
    others["spec"]["taints"] = json!([{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]);
    assert_eq!(decided(others, &RUNS).1, UncordonResult::NotOurs { node: "n-1".to_owned() });
}

#[test]
fn out_of_service_taint_of_an_uncordoned_node_goes() {
    let mut rebalanced = claimed_for("rebalance recommendation");
    rebalanced["spec"]["taints"] =
        json!([{"key": "node.kubernetes.io/out-of-service", "value": "spillway", "effect": "NoExecute"}]);
    let (patch, result) = decided(rebalanced, &UncordonCause::Rebalance);
    assert!(patch.iter().any(|operation| operation.contains("/spec/taints/0")), "{patch:?}");
    assert_eq!(result, given_back());
}

#[test]
fn taint_of_a_waiting_node_goes_with_its_maintenance() {
    let mut waiting = node();
    waiting["metadata"]["annotations"] = json!({});
    waiting["spec"] = json!({"taints": [{"key": "spillway/planned", "value": "e-1", "effect": "PreferNoSchedule"}]});
    // The node was never out of use, so it need not be Ready.
    waiting["status"]["conditions"][0]["status"] = json!("Unknown");
    for over in [UncordonCause::Maintenance(maintenance("m-1")), UncordonCause::Reboot(maintenance("m-1"))] {
        let (patch, result) = decided(waiting.clone(), &over);
        assert_eq!(patch[1..], [r#"{"op":"remove","path":"/spec/taints/0"}"#.to_owned()]);
        assert_eq!(result, UncordonResult::NotOurs { node: "n-1".to_owned() });
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

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_core::kube::pod::Pod;
use spillway_core::test_support::settings;

use super::super::budgets::ClusterBudgets;
use super::super::budgets::tests::budget;
use super::super::fleet::NodeMetadata;
use super::*;
use crate::report::CheckStatus;
use crate::report::tests::shown;

/// Pod of a `StatefulSet` in namespace shop.
fn pod(name: &str, app: &str, node: &str, spec: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": app}, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": app, "uid": "u", "controller": true}]},
        "spec": spec, "status": {"phase": "Running"},
    });
    pod["spec"]["nodeName"] = json!(node);
    serde_json::from_value(pod).unwrap()
}

/// Check of a cluster with the nodes n-1 to n-7.
fn of(statuses: &[(&str, &str, Value)], pods: &[Pod]) -> Check {
    let rehearsal = Rehearsal::Made { unanswered: Vec::new(), left_out: 0 };
    rehearsed(statuses, pods, &Pods { listed: Ok(()), rehearsal })
}

fn rehearsed(statuses: &[(&str, &str, Value)], pods: &[Pod], results: &Pods) -> Check {
    let settings = settings(&[]);
    let (mut fleet, mut budgets) = (Fleet::new(&settings), ClusterBudgets::default());
    (1..=7).for_each(|node| fleet.add(&NodeMetadata { name: format!("n-{node}"), ..NodeMetadata::default() }));
    for (name, app, status) in statuses {
        budgets.add(budget(name, app, status).into());
    }
    let window = Duration::from_secs(118);
    let mut survey = Survey::new(&fleet, &budgets, window, Timestamp::UNIX_EPOCH);
    for pod in pods {
        survey.add(pod);
    }
    survey.record_slow_budgets();
    let hook_wait = Duration::from_secs(3600);
    check(&fleet, &survey, Circumstances { window, budgets: &budgets, hook_wait }, results, Vec::new())
}

fn status(allowed: i32, healthy: i32, desired: i32, expected: i32) -> Value {
    json!({"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired,
        "expectedPods": expected})
}

#[test]
fn cluster_with_evictable_pods_has_no_finding() {
    let pods = [pod("web-0", "web", "n-1", &json!({})), pod("web-1", "web", "n-2", &json!({}))];
    let check = of(&[("web", "web", status(1, 2, 1, 2))], &pods);
    assert_eq!((check.status, check.findings.len()), (CheckStatus::Ok, 0));
    assert_eq!(
        check.what,
        "7 of 7 nodes are Spillway's to drain; each of them could be drained in two minutes right now"
    );
}

/// Owner references are written by users and not validated.
#[test]
fn long_owner_is_cut() {
    let mut planted = pod("game-0", "game", "n-4", &json!({}));
    planted.metadata.annotations = Some([("karpenter.sh/do-not-disrupt".to_owned(), "true".to_owned())].into());
    let owner = &mut planted.metadata.owner_references.as_mut().unwrap()[0];
    (owner.kind, owner.name) = ("x".to_owned(), "y".repeat(1_000_000));
    let found = of(&[], &[planted]).findings;
    assert_eq!(found[0].id, FindingId::DoNotDisrupt);
    assert!(found[0].object.len() < 300);
}

#[test]
fn each_cause_has_object_effect_and_remedy() {
    let long = json!({"terminationGracePeriodSeconds": 600});
    let mut do_not_disrupt = pod("game-0", "game", "n-4", &json!({}));
    do_not_disrupt.metadata.annotations = Some([("karpenter.sh/do-not-disrupt".to_owned(), "true".to_owned())].into());
    let mut bare = pod("debug", "debug", "n-5", &long);
    bare.metadata.owner_references = None;
    let pods = vec![
        pod("web-0", "web", "n-1", &json!({})),
        pod("web-1", "web", "n-2", &json!({})),
        pod("api-0", "api", "n-2", &json!({})),
        pod("api-1", "api", "n-2", &json!({})),
        pod("db-0", "db", "n-3", &long),
        pod("db-1", "db", "n-1", &long),
        pod("two-0", "two", "n-6", &json!({})),
        pod("two-1", "two", "n-6", &json!({})),
        do_not_disrupt,
        bare,
    ];
    let budgets = [
        ("web", "web", status(0, 2, 2, 2)),
        ("api", "api", status(0, 1, 1, 2)),
        ("two-a", "two", status(1, 2, 1, 2)),
        ("two-b", "two", status(1, 2, 1, 2)),
    ];
    let check = of(&budgets, &pods);
    let held_up: Vec<_> =
        check.nodes.iter().map(|held| format!("{}: {}", held.node, held.because.join(", "))).collect();
    insta::assert_snapshot!(format!("{}\n{}", shown(&check), held_up.join("\n")));
}

#[test]
fn staying_leaving_and_foreign_pods_hold_no_node_up() {
    let long = json!({"terminationGracePeriodSeconds": 600});
    let mut leaving = pod("going", "web", "n-1", &long);
    leaving.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-21T03:12:00Z")).unwrap();
    let mut agent = pod("agent", "agent", "n-1", &long);
    agent.metadata.owner_references.as_mut().unwrap()[0].kind = "DaemonSet".to_owned();
    let of_others = pod("far", "web", "n-99", &long);
    let check = of(&[("web", "web", status(0, 2, 2, 2))], &[leaving, agent, of_others]);
    assert_eq!(check.findings, []);
}

#[test]
fn many_nodes_of_one_cause_are_one_finding() {
    let pods: Vec<_> = (1..=7).map(|at| pod(&format!("web-{at}"), "web", &format!("n-{at}"), &json!({}))).collect();
    let check = of(&[("web", "web", status(0, 7, 7, 7))], &pods);
    assert_eq!((check.findings.len(), check.findings[0].nodes_count), (1, 7));
    let what = &check.findings[0].what;
    assert!(what.contains("7 nodes cannot be drained in time: n-1, n-2, n-3, n-4, n-5 and 2 more."), "{what}");
}

#[test]
fn slow_budget_holds_nodes_with_many_pods() {
    let on = |node: &str, count: usize| {
        let node = node.to_owned();
        (0..count).map(move |at| pod(&format!("web-{node}-{at}"), "web", &node, &json!({})))
    };
    let pods: Vec<_> = on("n-1", 20).chain(on("n-2", 4)).chain(on("n-3", 3)).collect();
    let check = of(&[("web", "web", status(1, 27, 26, 27))], &pods);
    let found: Vec<_> = check.findings.iter().map(|finding| (finding.id, finding.nodes.join(" "))).collect();
    assert_eq!(
        found,
        [(FindingId::BudgetAllowsFewDisruptions, "n-1 n-2".to_owned())],
        "three leave within two minutes"
    );
    assert_eq!(of(&[("web", "web", status(7, 27, 20, 27))], &pods).findings, [], "7 at a time, three times");
}

#[test]
fn incomplete_rehearsal_is_part_of_the_verdict() {
    let unanswered = ["web", "db"].map(|name| {
        let budget = BudgetName { namespace: "shop".to_owned(), name: name.to_owned() };
        Unanswered { budget, why: "the API server is busy".to_owned() }
    });
    let check = |listed, rehearsal| rehearsed(&[], &[], &Pods { listed, rehearsal });
    let unknown = check(Ok(()), Rehearsal::Made { unanswered: unanswered.into(), left_out: 0 });
    let [finding] = unknown.findings.as_slice() else { panic!("{:?}", unknown.findings) };
    assert_eq!((finding.id, finding.object.as_str()), (FindingId::BudgetsUnknown, "2 budgets"));
    assert_eq!(finding.what, "could not be rehearsed (shop/web, shop/db): the API server is busy");
    assert_eq!(unknown.status, CheckStatus::Unknown);
    let broken_off = check(Err(ApiError::TimeUp), Rehearsal::Skipped);
    assert_eq!((broken_off.status, broken_off.findings[0].id), (CheckStatus::Unknown, FindingId::NotAllPodsListed));
}

#[test]
fn job_behind_a_budget_needs_the_disruption_target() {
    let mut of_job = pod("batch-0", "batch", "n-1", &json!({}));
    of_job.metadata.owner_references.as_mut().unwrap()[0].kind = "Job".to_owned();
    let fleet_of = |budgets: &[(&str, &str, Value)]| of(budgets, std::slice::from_ref(&of_job)).findings;
    assert!(fleet_of(&[]).is_empty(), "no budget");
    let found = fleet_of(&[("batch", "batch", status(1, 1, 0, 1))]);
    let [Finding { id: FindingId::MissingRight, severity: Severity::Warn, object, what, .. }] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(object, "patch pods/status");
    assert!(what.contains("shop/batch-0"), "{what}");
}

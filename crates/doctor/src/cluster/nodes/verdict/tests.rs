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

/// A pod of an app of namespace shop.
fn pod(name: &str, app: &str, node: &str, spec: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": app}, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": app, "uid": "u", "controller": true}]},
        "spec": spec, "status": {"phase": "Running"},
    });
    pod["spec"]["nodeName"] = json!(node);
    serde_json::from_value(pod).unwrap()
}

/// What a cluster with nodes n-1 to n-7, such budgets and such pods comes to.
fn of(statuses: &[(&str, &str, Value)], pods: &[Pod]) -> Check {
    rehearsed(statuses, pods, Rehearsal::Held { unanswered: Vec::new(), left_out: 0 })
}

/// The same after such a rehearsal.
fn rehearsed(statuses: &[(&str, &str, Value)], pods: &[Pod], rehearsal: Rehearsal) -> Check {
    let settings = settings(&[]);
    let (mut fleet, mut budgets) = (Fleet::new(&settings), ClusterBudgets::default());
    (1..=7).for_each(|node| fleet.see(&NodeMetadata { name: format!("n-{node}"), ..NodeMetadata::default() }));
    for (name, app, status) in statuses {
        budgets.see(budget(name, app, status).into());
    }
    let window = Duration::from_secs(118);
    let mut survey = Survey::new(&fleet, &budgets, window, Timestamp::UNIX_EPOCH);
    for pod in pods {
        survey.see(pod);
    }
    survey.hold_by_few_allowed();
    let hook_wait = Duration::from_secs(3600);
    let circumstances = Circumstances { window, budgets: &budgets, hook_wait };
    check(&fleet, &survey, circumstances, &Pods { seen: Ok(()), rehearsal }, Vec::new())
}

fn status(allowed: i32, healthy: i32, desired: i32, expected: i32) -> Value {
    json!({"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired,
        "expectedPods": expected})
}

/// As it reads in a terminal, more or less.
fn told(check: &Check) -> String {
    let finding = |finding: &Finding| {
        let Finding { id, severity, object, what, to_do, command, .. } = finding;
        let (id, command) = (json!(id), command.as_deref().unwrap_or("no command"));
        let id = id.as_str().unwrap();
        format!("{severity:?} {id}\n{object}: {what}\n-> {to_do}\n$ {command}\n")
    };
    let findings: Vec<_> = check.findings.iter().map(finding).collect();
    format!("{:?}: {}\n\n{}", check.status, check.what, findings.join("\n"))
}

#[test]
fn a_cluster_whose_pods_can_all_leave_has_no_finding() {
    let pods = [pod("web-0", "web", "n-1", &json!({})), pod("web-1", "web", "n-2", &json!({}))];
    let check = of(&[("web", "web", status(1, 2, 1, 2))], &pods);
    assert_eq!((check.status, check.findings.len()), (CheckStatus::Ok, 0));
    assert_eq!(
        check.what,
        "7 of 7 nodes are Spillway's to drain; each of them could be drained in two minutes right now"
    );
}

/// Users write owner references, and no controller checks them.
#[test]
fn owner_of_any_length_is_cut_off() {
    let mut planted = pod("game-0", "game", "n-4", &json!({}));
    planted.metadata.annotations = Some([("karpenter.sh/do-not-disrupt".to_owned(), "true".to_owned())].into());
    let owner = &mut planted.metadata.owner_references.as_mut().unwrap()[0];
    (owner.kind, owner.name) = ("x".to_owned(), "y".repeat(1_000_000));
    let found = of(&[], &[planted]).findings;
    assert_eq!(found[0].id, FindingId::DoNotDisrupt);
    assert!(found[0].object.len() < 300);
}

#[test]
fn each_thing_that_holds_a_drain_up_is_told_with_what_to_do() {
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
    insta::assert_snapshot!(told(&check));
    let held_up: Vec<_> =
        check.nodes.iter().map(|held| format!("{}: {}", held.node, held.because.join(", "))).collect();
    insta::assert_snapshot!(held_up.join("\n"));
}

#[test]
fn a_budget_that_cannot_be_calculated_is_not_told_to_have_more_room() {
    let failed = json!({"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed",
        "message": "jobs.batch does not implement the scale subresource",
        "lastTransitionTime": "2026-11-21T03:12:00Z"});
    let status = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
        "conditions": [failed]});
    let check = of(&[("job", "job", status)], &[pod("job-x", "job", "n-1", &json!({}))]);
    insta::assert_snapshot!(told(&check));
}

#[test]
fn what_stays_or_leaves_anyway_or_is_on_a_node_of_others_holds_nothing_up() {
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
fn a_budget_that_lets_few_pods_go_at_a_time_holds_the_nodes_that_have_many() {
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
    assert_eq!(check.nodes.len(), 2);
    insta::assert_snapshot!(told(&check));
    assert_eq!(of(&[("web", "web", status(7, 27, 20, 27))], &pods).findings, [], "7 at a time, three times");
}

#[test]
fn budgets_that_nobody_answered_for_are_one_finding_and_their_nodes_are_not_said_to_be_well() {
    let unanswered = ["web", "db"].map(|name| {
        let budget = BudgetName { namespace: "shop".to_owned(), name: name.to_owned() };
        Unanswered { budget, why: "the API server is busy".to_owned() }
    });
    let check = rehearsed(&[], &[], Rehearsal::Held { unanswered: unanswered.into(), left_out: 0 });
    let [finding] = check.findings.as_slice() else { panic!("{:?}", check.findings) };
    assert_eq!((finding.id, finding.object.as_str()), (FindingId::BudgetsUnknown, "2 budgets"));
    let what = "nobody said whether they allow a disruption, shop/web, shop/db: the API server is busy";
    assert_eq!(finding.what, what);
    assert_eq!(check.status, CheckStatus::Unknown);
    assert!(check.what.ends_with("; not all of their pods could be asked for"), "{}", check.what);
}

#[test]
fn budgets_that_were_too_many_to_be_asked_about_are_counted() {
    let check = rehearsed(&[], &[], Rehearsal::Held { unanswered: Vec::new(), left_out: 30 });
    let end = "right now, by what lists show: of 30 budgets no pod was asked for";
    assert!(check.what.ends_with(end), "{}", check.what);
}

#[test]
fn without_the_right_to_evict_no_node_is_said_to_be_well() {
    let check = rehearsed(&[], &[], Rehearsal::LeftOut);
    assert!(check.what.ends_with("; none of them could be drained without the right to evict pods"), "{}", check.what);
}

#[test]
fn a_list_that_broke_off_is_told() {
    let settings = settings(&[]);
    let (fleet, budgets) = (Fleet::new(&settings), ClusterBudgets::default());
    let window = Duration::from_secs(118);
    let survey = Survey::new(&fleet, &budgets, window, Timestamp::UNIX_EPOCH);
    let hook_wait = Duration::from_secs(3600);
    let circumstances = Circumstances { window, budgets: &budgets, hook_wait };
    let looked = Pods { seen: Err(ApiError::TimeUp), rehearsal: Rehearsal::LeftOut };
    let check = check(&fleet, &survey, circumstances, &looked, Vec::new());
    assert_eq!((check.status, check.findings[0].id), (CheckStatus::Unknown, FindingId::NotAllPodsListed));
}

#[test]
fn the_jobs_whose_pods_a_budget_may_block_are_named_unless_they_can_be_told() {
    let mut of_job = pod("batch-0", "batch", "n-1", &json!({}));
    of_job.metadata.owner_references.as_mut().unwrap()[0].kind = "Job".to_owned();
    let fleet_of = |budgets: &[(&str, &str, Value)]| of(budgets, std::slice::from_ref(&of_job)).findings;
    assert!(fleet_of(&[]).is_empty(), "it is evicted, and nothing keeps it");
    let found = fleet_of(&[("batch", "batch", status(1, 1, 0, 1))]);
    let [Finding { id: FindingId::MissingRight, severity: Severity::Warn, object, what, .. }] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(object, "patch pods/status");
    assert!(what.contains("shop/batch-0"), "{what}");

    let settings = settings(&[]);
    let (mut fleet, mut budgets) = (Fleet::new(&settings), ClusterBudgets::default());
    fleet.see(&NodeMetadata { name: "n-1".to_owned(), ..NodeMetadata::default() });
    budgets.see(budget("batch", "batch", &status(1, 1, 0, 1)).into());
    let mut survey = Survey::new(&fleet, &budgets, Duration::from_secs(118), Timestamp::UNIX_EPOCH);
    survey.see(&of_job);
    assert!(survey.has_jobs_behind_budgets());
    survey.jobs_are_told();
    assert!(survey.held_up.is_empty());
}

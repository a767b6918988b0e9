//! Pods that PodDisruptionBudgets hold leave when there is room, and in time when there is none.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, Patch, PatchParams, WatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use spillway_bed::NodeOptions;
use spillway_bed::audit::Request;
use spillway_bed::gateway::{Answer, Fault, Rule, Which};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::watch::until;
use spillway_e2e::{Stage, fates, receipt, spot_notice};

const SPOT: Duration = Duration::from_secs(120);
const WAIT: Duration = Duration::from_mins(1);

/// At most so many pods of the app may be unavailable.
async fn budget(stage: &Stage, app: &str, max_unavailable: u32, healthy: i32) {
    let object = json!({
        "metadata": {"namespace": stage.name, "name": app},
        "spec": {"maxUnavailable": max_unavailable, "selector": {"matchLabels": {"app": app}}},
    });
    let object: PodDisruptionBudget = serde_json::from_value(object).expect("it is a budget");
    let client = stage.world.admin();
    pods::create(&client, &object).await.expect("it is created");
    pods::until_budget_sees(&client, &stage.name, app, healthy).await.expect("it counts");
}

/// Runs a deployment on the stage's node, whose pods can go on elsewhere: a second node joins.
async fn deploy_with_a_way_out(stage: &Stage, app: &str, replicas: u32, shape: &PodShape) {
    let client = stage.world.admin();
    let labels = BTreeMap::from([("stage".to_owned(), stage.name.clone())]);
    let mut deployment = pods::deployment(&stage.name, app, replicas, shape);
    let pod = deployment.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).expect("it has pods");
    pod.node_selector = Some(labels.clone());
    pods::create(&client, &deployment).await.expect("it is created");
    pods::until_running_of(&client, &stage.name, app, replicas as usize).await.expect("its pods run");
    // From here on the label leads to the second node only: a scheduler that stands still may hear of a replacement
    // before it hears of the cordon.
    stage.change_node(&json!({"metadata": {"labels": {"stage": null}}})).await;
    stage.world.add_node(NodeOptions { labels, ..NodeOptions::default() }).await.expect("the second node joins");
}

#[tokio::test]
async fn twenty_pods_behind_max_unavailable_one_leave_as_fast_as_their_replacements_become_ready() {
    let mut stage = Stage::set("one-by-one").await;
    let shape = PodShape::default().ready_after(Duration::from_millis(300));
    deploy_with_a_way_out(&stage, "web", 20, &shape).await;
    budget(&stage, "web", 1, 20).await;

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    // One every five seconds would not be done in time, and some would be forced.
    assert_eq!(fates(answer), [("clean".to_owned(), 20)].into(), "{answer:#}");
    let requests = stage.audit.requests().expect("the audit log");
    let count = |code| requests.iter().filter(|r| r.subresource == "eviction" && r.code == Some(code)).count();
    assert_eq!(count(201), 20);
    assert!(count(429) <= 30, "each pod once in vain, and now and then a probe: {}", count(429));
    let budgets = requests.iter().filter(|r| r.resource == "poddisruptionbudgets");
    let budgets: Vec<&str> = budgets.map(|r| r.verb.as_str()).collect();
    // A watch may end and be made again: the API server ends one whose reader does not keep up with a burst of changes.
    assert!(budgets.starts_with(&["list", "watch"]) && budgets.len() <= 4, "{budgets:?}");
}

#[tokio::test]
async fn a_drain_that_no_budget_holds_up_asks_for_no_budgets() {
    let mut stage = Stage::set("room").await;
    stage.deploy("web", 4, PodShape::default()).await;
    budget(&stage, "web", 4, 4).await;

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    assert_eq!(fates(outcome.result.as_ref().expect("it drains"))["clean"], 4);
    let requests = stage.requests();
    assert!(requests.iter().all(|request| !request.contains("poddisruptionbudgets")), "{requests:#?}");
}

#[tokio::test]
async fn pods_leave_as_soon_as_their_budget_is_gone() {
    let mut stage = Stage::set("no-more").await;
    stage.deploy("web", 5, PodShape::default().exits_after(Duration::from_secs(1))).await;
    budget(&stage, "web", 0, 5).await;
    let client = stage.world.admin();

    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    let watching = |requests: &[Request]| {
        let refused = requests.iter().filter(|r| r.subresource == "eviction" && r.code == Some(429)).count();
        let watch = |r: &Request| r.verb == "watch" && r.resource == "poddisruptionbudgets" && r.code.is_some();
        refused >= 5 && requests.iter().any(watch)
    };
    stage.audit.wait_until("a watch of the budgets", WAIT, watching).await.expect("it watches");
    let budgets = Api::<PodDisruptionBudget>::namespaced(client, &stage.name);
    budgets.delete("web", &DeleteParams::default()).await.expect("it is deleted");

    let outcome = drain.await.expect("no panic");
    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(fates(answer)["clean"], 5);
    // One in vain for each; and one more, if the budget is still there when the fallback asks, every five seconds.
    let in_vain = [1, 2].map(|times| json!({"blocked-by-budget": times, "evicted": 1}));
    for pod in answer["pods"].as_array().expect("pods") {
        assert_eq!(pod["blocked_by"], "web");
        assert!(in_vain.contains(&pod["answers"]), "{answer:#}");
    }
    let requests = stage.audit.requests().expect("the audit log");
    let granted = requests.iter().filter(|r| r.subresource == "eviction" && r.code == Some(201));
    let granted: Vec<_> = granted.map(|r| r.received).collect();
    // By the fallback alone they would go one after the other, in twenty seconds.
    assert!(granted[4].duration_since(granted[0]).as_secs() < 10, "{requests:#?}");
}

#[tokio::test]
async fn pods_leave_when_their_budget_is_given_room() {
    let mut stage = Stage::set("given-room").await;
    stage.deploy("web", 20, PodShape::default()).await;
    budget(&stage, "web", 0, 20).await;

    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    let refused = |requests: &[Request]| requests.iter().any(|r| r.code == Some(429));
    stage.audit.wait_until("a refused eviction", WAIT, refused).await.expect("the budget refuses");
    let budgets = Api::<PodDisruptionBudget>::namespaced(stage.world.admin(), &stage.name);
    let wider = Patch::Merge(json!({"spec": {"maxUnavailable": 20}}));
    budgets.patch("web", &PatchParams::default(), &wider).await.expect("it is changed");

    let outcome = drain.await.expect("no panic");
    assert_eq!(fates(outcome.result.as_ref().expect("it drains"))["clean"], 20, "not one every five seconds");
}

/// It selects none of them from then on, and what it allows stays 0.
#[tokio::test]
async fn pods_leave_at_once_when_their_budget_is_edited_so_that_it_lets_them_go() {
    const PODS: usize = 8;
    let mut stage = Stage::set("edited-budget").await;
    stage.deploy("web", 8, PodShape::default()).await;
    budget(&stage, "web", 0, 8).await;

    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    let refused = |requests: &[Request]| {
        let watched = requests.iter().any(|r| r.verb == "watch" && r.resource == "poddisruptionbudgets");
        watched && requests.iter().filter(|r| r.code == Some(429)).count() >= PODS
    };
    stage.audit.wait_until("refused evictions", WAIT, refused).await.expect("the budget refuses");
    let budgets = Api::<PodDisruptionBudget>::namespaced(stage.world.admin(), &stage.name);
    let others = Patch::Merge(json!({"spec": {"selector": {"matchLabels": {"app": "elsewhere"}}}}));
    budgets.patch("web", &PatchParams::default(), &others).await.expect("it is changed");

    let outcome = drain.await.expect("no panic");
    assert_eq!(fates(outcome.result.as_ref().expect("it drains"))["clean"], PODS);
    let requests = stage.audit.requests().expect("the audit log");
    let granted = requests.iter().filter(|r| r.subresource == "eviction" && r.code == Some(201));
    let granted: Vec<_> = granted.map(|r| r.received).collect();
    // By the fallback alone they would go one after the other, in 35 seconds.
    assert!(granted[PODS - 1].duration_since(granted[0]).as_secs() < 10, "{requests:#?}");
}

#[tokio::test]
async fn a_watch_of_the_budgets_that_breaks_is_begun_again() {
    let mut stage = Stage::set("broken-watch").await;
    stage.deploy("web", 5, PodShape::default()).await;
    budget(&stage, "web", 0, 5).await;
    let gateway = stage.through_gateway().await;
    let breaks = |n, fault| gateway.rules().add(Rule::new("watch poddisruptionbudgets", Which::Nth(n), fault));
    breaks(1, Fault::Reset);
    breaks(2, Fault::Answer(Answer::kubernetes(410)));
    breaks(3, Fault::Answer(Answer::kubernetes(503)));

    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    let watching = |requests: &[Request]| {
        requests.iter().any(|r| r.verb == "watch" && r.resource == "poddisruptionbudgets" && r.code == Some(200))
    };
    stage.audit.wait_until("a watch of the budgets", WAIT, watching).await.expect("it watches in the end");
    let budgets = Api::<PodDisruptionBudget>::namespaced(stage.world.admin(), &stage.name);
    budgets.delete("web", &DeleteParams::default()).await.expect("it is deleted");

    let outcome = drain.await.expect("no panic");
    assert_eq!(fates(outcome.result.as_ref().expect("it drains"))["clean"], 5);
    assert_eq!(gateway.rules().struck(), 3, "{:?}", gateway.rules().calls());
}

/// Runs a Job of one pod on the stage's node, behind a budget. It puts up with no failure, but with disruptions.
async fn job_behind_a_budget(stage: &Stage) -> Pod {
    let client = stage.world.admin();
    let mut job = pods::job(&stage.name, "batch", &PodShape::default().grace(1).on_node(&stage.node.name));
    let spec = job.spec.as_mut().expect("it has one");
    spec.backoff_limit = Some(0);
    let ignored = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    spec.pod_failure_policy = serde_json::from_value(ignored).expect("a policy");
    pods::create(&client, &job).await.expect("it is created");
    let pod = pods::until_running_of(&client, &stage.name, "batch", 1).await.expect("it runs").remove(0);
    pods::create(&client, &pods::budget(&stage.name, "batch", 1)).await.expect("it is created");
    pods::until_budget_sees(&client, &stage.name, "batch", 1).await.expect("it counts");
    pod
}

/// Waits until the Job's controller has taken note of its pod's end: how often it failed, and whether that is the Job's end.
async fn job_after_its_pod(stage: &Stage, pod: &Pod) -> (Option<i32>, bool) {
    let client = stage.world.admin();
    // As a kubelet tells it, before the object goes.
    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    let pods = Api::<Pod>::namespaced(client.clone(), &stage.name);
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &failed).await.expect("its finalizer keeps it");
    let jobs = Api::<Job>::namespaced(client, &stage.name);
    let all = WatchParams::default();
    until(&jobs, &all, "the Job to go on or to fail", WAIT, |jobs| {
        let status = jobs.values().next().and_then(|job| job.status.clone()).ok_or("it has no status")?;
        let has_failed = status.conditions.iter().flatten().any(|is| is.type_ == "Failed" && is.status == "True");
        let goes_on =
            status.active == Some(1) && status.terminating.unwrap_or_default() == 0 && status.ready == Some(0);
        if has_failed || goes_on { Ok((status.failed, has_failed)) } else { Err(format!("{status:?}")) }
    })
    .await
    .expect("its controller looks")
}

/// With deploy/optional/disruption-target.yaml. A pod that is deleted without the condition is a failure to its Job.
#[tokio::test]
async fn a_job_whose_pod_is_deleted_past_its_budget_counts_a_disruption_and_no_failure() {
    let mut stage = Stage::set("disrupted").await;
    let pod = job_behind_a_budget(&stage).await;
    // Fifteen seconds are left; half of them the budget has.
    let late = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(105));

    let outcome = stage.lambda.invoke(late).await;

    assert_eq!(fates(&receipt(&outcome)), [("forced".to_owned(), 1)].into(), "{outcome:#?}");
    assert_eq!(job_after_its_pod(&stage, &pod).await, (None, false), "how often it failed, and whether for good");
    let requests = stage.audit.requests().expect("the audit log");
    let of_pod = |r: &&Request| r.resource == "pods" && r.name == pod.name_any() && r.subresource != "eviction";
    let requests: Vec<_> = requests.iter().filter(of_pod).map(|r| (&*r.verb, &*r.subresource, r.code)).collect();
    assert_eq!(requests, [("patch", "status", Some(200)), ("delete", "", Some(200))]);
}

/// It is not let wait for the deletion: one that is refused is the last of the drain, and one that hangs takes a second.
#[tokio::test]
async fn a_condition_that_cannot_be_set_keeps_no_pod_from_its_deletion() {
    for (name, fault) in
        [("disrupted-403", Fault::Answer(Answer::kubernetes(403))), ("disrupted-silent", Fault::Silence)]
    {
        let mut stage = Stage::set(name).await;
        stage.deploy("web", 20, PodShape::default().grace(1)).await;
        budget(&stage, "web", 0, 20).await;
        let gateway = stage.through_gateway().await;
        gateway.rules().add(Rule::new("patch pods/status", Which::All, fault));
        let late = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(105));

        let outcome = stage.lambda.invoke(late).await;

        assert_eq!(fates(&receipt(&outcome)), [("forced".to_owned(), 20)].into(), "{outcome:#?}");
        let said = outcome.logs.iter().filter(|line| line.contains("cannot set the condition DisruptionTarget"));
        assert_eq!(said.count(), 1, "{outcome:#?}");
        let requests = stage.audit.requests().expect("the audit log");
        assert!(requests.iter().all(|request| request.subresource != "status"), "{requests:#?}");
    }
}

//! What a drain waits for, and what it does not.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::audit::Request;
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Answer, Fault, Held, Rule, Side, Which};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, kubelet};
use spillway_e2e::{Stage, fates, receipt, spot_notice};
use tokio::task::JoinHandle;

const SPOT: Duration = Duration::from_secs(120);
const WAIT: Duration = Duration::from_mins(1);

/// Starts the drain of a spot notice.
async fn interrupted(stage: &Stage) -> JoinHandle<Value> {
    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    tokio::spawn(async move { lambda.invoke(event).await.result.expect("it drains") })
}

fn pods_of(stage: &Stage) -> Api<Pod> {
    Api::namespaced(stage.world.admin(), &stage.name)
}

async fn annotate(stage: &Stage, pod: &str, annotation: &str, value: Option<&str>) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {annotation: value}}}));
    pods_of(stage).patch(pod, &PatchParams::default(), &patch).await.expect("it is annotated");
}

async fn bare(stage: &Stage, name: &str, shape: PodShape) -> Pod {
    let client = stage.world.admin();
    let before = pods::on_node(&client, &stage.node.name).await.expect("a list").len();
    let pod = pods::bare_pod(&stage.name, name, &shape.on_node(&stage.node.name));
    pods::create(&client, &pod).await.expect("it is created");
    let running = pods::until_running_on(&client, &stage.node.name, before + 1).await.expect("it runs");
    running.into_iter().find(|pod| pod.name_any() == name).expect("it is there")
}

#[tokio::test]
async fn a_pod_that_is_bound_between_the_list_and_the_watch_leaves_too() {
    let stage = Stage::set("between").await;
    bare(&stage, "early", PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    let held = Held::default();
    gateway.rules().add(Rule::new("list pods", Which::Nth(1), Fault::Hold(Side::After, held.clone())));

    let drain = interrupted(&stage).await;
    held.reached().await;
    let mut late = pods::bare_pod(&stage.name, "late", &PodShape::default());
    late.spec.as_mut().expect("it has a spec").node_name = Some(stage.node.name.clone());
    pods::create(&stage.world.admin(), &late).await.expect("it is bound");
    held.release();

    let answer = drain.await.expect("no panic");
    assert_eq!(fates(&answer)["clean"], 2, "the list did not have it: {answer:#}");
}

#[tokio::test]
async fn a_watch_that_has_lost_its_place_misses_nothing() {
    let mut stage = Stage::set("lost-its-place").await;
    stage.deploy("web", 3, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("watch pods", Which::Nth(1), Fault::Answer(Answer::kubernetes(410))));

    let answer = interrupted(&stage).await.await.expect("no panic");

    assert_eq!(fates(&answer)["clean"], 3, "{answer:#}");
    let lists = stage.requests().into_iter().filter(|request| request.starts_with("list pods")).count();
    assert_eq!((gateway.rules().struck(), lists), (1, 2), "it is listed again");
}

#[tokio::test]
async fn a_watch_that_broke_and_is_well_again_is_no_reason_why_a_pod_was_left() {
    let mut stage = Stage::set("well-again").await;
    bare(&stage, "stuck", PodShape::default()).await;
    annotate(&stage, "stuck", "spillway.test/lost", Some("true")).await;
    let gateway = stage.through_gateway().await;
    // Late: the window is twenty seconds.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(100));
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    let watching = |requests: &[Request]| requests.iter().any(|r| r.verb == "watch" && r.code.is_some());
    stage.audit.wait_until("the watch", WAIT, watching).await.expect("it watches");
    // The time is the fault: a watch that breaks after five seconds goes on where it was, without a list.
    tokio::time::sleep(Duration::from_secs(6)).await;
    gateway.network().reset();

    let outcome = drain.await.expect("no panic");

    assert_eq!(receipt(&outcome)["pods"][0]["why"], "it was still shutting down", "{outcome:#?}");
    let calls = gateway.rules().calls();
    let count = |call: &str| calls.iter().filter(|other| *other == call).count();
    // There is another list only for a watch that the API server, on a busy machine, did not even begin in time.
    let (lists, watches) = (count("list pods"), count("watch pods"));
    assert!(watches >= 2 && watches == lists + 1, "{calls:?}");
}

#[tokio::test]
async fn a_pod_that_tolerates_the_cordon_and_comes_later_leaves_too() {
    let mut stage = Stage::set("late").await;
    bare(&stage, "slow", PodShape::default()).await;
    annotate(&stage, "slow", "spillway.test/lost", Some("true")).await;
    let drain = interrupted(&stage).await;
    let watching = |requests: &[Request]| requests.iter().any(|r| r.verb == "watch" && r.code.is_some());
    stage.audit.wait_until("the watch", WAIT, watching).await.expect("it watches");

    let mut late = pods::bare_pod(&stage.name, "late", &PodShape::default());
    let spec = late.spec.as_mut().expect("it has a spec");
    // What a scheduler does that has not yet received of the cordon, too.
    spec.node_name = Some(stage.node.name.clone());
    pods::create(&stage.world.admin(), &late).await.expect("it is created");
    annotate(&stage, "slow", "spillway.test/lost", None).await;

    let answer = drain.await.expect("no panic");
    assert_eq!(fates(&answer)["clean"], 2, "{answer:#}");
    assert!(pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list").is_empty());
}

#[tokio::test]
async fn a_pod_that_another_node_has_taken_over_under_its_name_is_not_waited_for() {
    let mut stage = Stage::set("taken-over").await;
    let other = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    // Its kubelet will not say that it has stopped. (kwok would, by its name, when the next one has it.)
    bare(&stage, "db-0", PodShape::default()).await;
    annotate(&stage, "db-0", "spillway.test/lost", Some("true")).await;
    let drain = interrupted(&stage).await;
    let told = |requests: &[Request]| requests.iter().any(|r| r.subresource == "eviction" && r.done.is_some());
    stage.audit.wait_until("the eviction", WAIT, told).await.expect("it is evicted");

    // Somebody who is in a hurry takes the object away, and makes the next.
    let now = DeleteParams::default().grace_period(0);
    pods_of(&stage).delete("db-0", &now).await.expect("it is deleted");
    let next = pods::bare_pod(&stage.name, "db-0", &PodShape::default().on_node(&other.name));
    let next = pods::create(&stage.world.admin(), &next).await.expect("it is created again");

    let answer = drain.await.expect("no panic");
    assert_eq!(answer["ending"], "drained");
    assert_eq!(answer["pods"].as_array().map(Vec::len), Some(1), "{answer:#}");
    let there = pods_of(&stage).get("db-0").await.expect("it is there");
    assert_eq!((there.uid(), there.metadata.deletion_timestamp), (next.uid(), None));
}

#[tokio::test]
async fn a_node_that_has_stopped_answering_is_not_waited_for() {
    let mut stage = Stage::set("silent").await;
    bare(&stage, "lost", PodShape::default().grace(1)).await;
    kubelet::silence(&stage.world.admin(), &stage.node.name).await.expect("it says no more");

    let answer = interrupted(&stage).await.await.expect("no panic");

    assert_eq!(answer["ending"], "drained", "{answer:#}");
    assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains("has stopped answering")), "{answer:#}");
    let pod = &answer["pods"][0];
    assert_eq!((&pod["fate"], &pod["answers"]), (&json!("unconfirmed"), &json!({"evicted": 1})));
    let looks = stage.requests().into_iter().filter(|request| request.starts_with("list nodes")).count();
    assert_eq!(looks, 1, "{:#?}", stage.requests());
}

/// The budget would hold its hook for an hour: nothing counts as available until the node comes back.
#[tokio::test]
async fn the_hook_of_a_dead_node_is_not_held_by_the_budget_of_a_pod_that_does_not_run() {
    let mut stage = Stage::set_in_group("dead-node", Hook::terminate("spillway")).await;
    stage = stage.with_invocations_of(Duration::from_secs(110)).await;
    let client = stage.world.admin();
    bare(&stage, "db", PodShape::default().grace(1).with(json!({"spec": {"tolerations": [{"operator": "Exists"}]}})))
        .await;
    pods::create(&client, &pods::budget(&stage.name, "db", 1)).await.expect("a budget");
    pods::until_budget_sees(&client, &stage.name, "db", 1).await.expect("it counts");
    // Alone in its zone, so that it does not matter how many nodes of other tests are silent.
    stage.change_node(&json!({"metadata": {"labels": {"topology.kubernetes.io/zone": stage.name}}})).await;
    kubelet::silence(&client, &stage.node.name).await.expect("it says no more");

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let told = receipt(&outcome);
    assert_eq!((&told["ending"], &told["hook"]["state"]), (&json!("drained"), &json!("completed")), "{told:#}");
    let requests = stage.audit.requests().expect("the audit log");
    let deletions = requests.iter().filter(|request| request.verb == "delete" && request.resource == "pods");
    assert_eq!(deletions.count(), 1, "{requests:#?}");
    let zones = requests.iter().filter(|request| request.uri.contains("topology.kubernetes.io"));
    assert_eq!(zones.count(), 1, "its zone is looked at once: {requests:#?}");
}

#[tokio::test]
async fn a_path_that_is_not_found_is_not_taken_for_a_node_that_is_gone() {
    let stage = Stage::set("no-such-path").await;
    // Overdue after eleven seconds: nobody says that it has stopped.
    bare(&stage, "lost", PodShape::default().grace(1)).await;
    annotate(&stage, "lost", "spillway.test/lost", Some("true")).await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("list nodes", Which::Nth(1), Fault::Answer(Answer::kubernetes(404))));
    // Late: thirty seconds are left, time enough for that look. Another is answered as ever.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(90));

    let outcome = stage.lambda.invoke(&event).await;

    assert_eq!(gateway.rules().struck(), 1, "{:?}", gateway.rules().calls());
    assert_eq!(fates(&receipt(&outcome)), [("lost".to_owned(), 1)].into(), "{outcome:#?}");
}

#[tokio::test]
async fn a_node_that_is_gone_is_not_waited_for() {
    let stage = Stage::set("node-gone").await;
    bare(&stage, "lost", PodShape::default().grace(1)).await;
    annotate(&stage, "lost", "spillway.test/lost", Some("true")).await;
    let gateway = stage.through_gateway().await;
    let held = Held::default();
    gateway.rules().add(Rule::new("list nodes", Which::Nth(1), Fault::Hold(Side::Before, held.clone())));

    let drain = interrupted(&stage).await;
    held.reached().await;
    let nodes = Api::<Node>::all(stage.world.admin());
    nodes.delete(&stage.node.name, &DeleteParams::default()).await.expect("it is deleted");
    held.release();

    let answer = drain.await.expect("no panic");
    assert_eq!(fates(&answer), [("unconfirmed".to_owned(), 1)].into(), "{answer:#}");
}

#[tokio::test]
async fn a_pod_with_do_not_disrupt_is_left_alone_until_it_takes_that_back() {
    let mut stage = Stage::set("do-not-disrupt").await;
    let do_not_disrupt = "karpenter.sh/do-not-disrupt";
    bare(&stage, "busy", PodShape::default()).await;
    annotate(&stage, "busy", do_not_disrupt, Some("true")).await;
    let idle = bare(&stage, "idle", PodShape::default()).await;

    let drain = interrupted(&stage).await;
    pods::until_gone(&stage.world.admin(), &idle).await.expect("it goes");
    let evicted = |requests: &[Request]| -> Vec<String> {
        requests.iter().filter(|r| r.subresource == "eviction").map(|r| r.name.clone()).collect()
    };
    // The API server may write down an eviction after its pod has gone.
    let told = |requests: &[Request]| !evicted(requests).is_empty();
    let requests = stage.audit.wait_until("the eviction", WAIT, told).await.expect("it is evicted");
    assert_eq!(evicted(&requests), ["idle"]);
    annotate(&stage, "busy", do_not_disrupt, None).await;

    let answer = drain.await.expect("no panic");
    assert_eq!(fates(&answer)["clean"], 2, "{answer:#}");
    assert_eq!(evicted(&stage.audit.requests().expect("the audit log")), ["idle", "busy"]);
}

/// A Job's pod that is deleted counts as failed; one that is evicted has a condition that says why it ended.
#[tokio::test]
async fn annotated_pod_is_evicted_in_time_and_never_deleted() {
    let mut stage = Stage::set("do-not-disrupt-forced").await;
    // It exits after the answer to its eviction: the receipt tells only of answers that came while it was there.
    bare(&stage, "busy", PodShape::default().grace(13).exits_after(Duration::from_secs(1))).await;
    annotate(&stage, "busy", "cluster-autoscaler.kubernetes.io/safe-to-evict", Some("false")).await;
    // Late by a minute and a half: of the thirty seconds that are left its budget has twenty, if it has one.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(90));

    let outcome = stage.lambda.invoke(&event).await;

    let answer = outcome.result.as_ref().expect("it drains");
    let pod = &answer["pods"][0];
    assert_eq!((&pod["fate"], &pod["answers"]), (&json!("clean"), &json!({"evicted": 1})), "{answer:#}");
    let requests = stage.requests();
    assert!(requests.iter().all(|request| !request.starts_with("delete")), "{requests:#?}");
}

/// Pods with a volume of Mountpoint for Amazon S3 get I/O errors once its mount pod has gone.
#[tokio::test]
async fn mount_pod_stays_and_pods_leave_in_the_order_they_ask_for() {
    let mut stage = Stage::set("last-or-skipped").await;
    let asks = |drain: &str| json!({"metadata": {"annotations": {"spillway/drain": drain}}});
    let labels = json!({"metadata": {"labels": {"s3.csi.aws.com/mountpoint-version": "1.20.0"}}});
    bare(&stage, "mount", PodShape::default().with(labels)).await;
    bare(&stage, "a-proxy", PodShape::default().with(asks("last"))).await;
    bare(&stage, "agent", PodShape::default().with(asks("skip"))).await;
    bare(&stage, "batch", PodShape::default().with(asks("wait"))).await;
    let web = bare(&stage, "web", PodShape::default()).await;
    let evicted = |requests: &[Request]| -> Vec<String> {
        requests.iter().filter(|r| r.subresource == "eviction").map(|r| r.name.clone()).collect()
    };

    let drain = interrupted(&stage).await;
    pods::until_gone(&stage.world.admin(), &web).await.expect("it goes");
    let told = |requests: &[Request]| !evicted(requests).is_empty();
    let requests = stage.audit.wait_until("the eviction", WAIT, told).await.expect("it is evicted");
    assert_eq!(evicted(&requests), ["web"]);
    annotate(&stage, "batch", "spillway/drain", None).await;

    let answer = drain.await.expect("no panic");
    assert_eq!((fates(&answer)["clean"], fates(&answer)["stayed"]), (3, 2), "{answer:#}");
    let stayed = answer["pods"].as_array().into_iter().flatten().filter(|pod| pod["fate"] == "stayed");
    let mut why: Vec<_> = stayed.map(|pod| pod["why"].as_str().expect("a text")).collect();
    why.sort_unstable();
    assert_eq!(why, ["it serves a volume to pods of the node", "its annotation spillway/drain=skip"]);
    assert_eq!(evicted(&stage.audit.requests().expect("the audit log")), ["web", "batch", "a-proxy"]);
}

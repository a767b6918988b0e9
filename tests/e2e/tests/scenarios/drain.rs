//! A notice drains the right node: the claim, the evictions, the waiting.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, TestNode};
use spillway_e2e::{Stage, fates, receipt, spot_notice};

const SPOT: Duration = Duration::from_secs(120);
const WAIT: Duration = Duration::from_mins(1);

async fn node(stage: &Stage, node: &TestNode) -> Node {
    Api::<Node>::all(stage.world.admin()).get(&node.name).await.expect("the node is there")
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

#[tokio::test]
async fn a_spot_notice_cordons_the_right_node_and_moves_its_pods() {
    let stage = Stage::set("spot").await;
    let neighbour = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    stage.deploy("web", 5, PodShape::default().exits_after(Duration::from_secs(1))).await;

    let outcome = stage.deliver(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained", "{outcome:#?}");
    assert_eq!(answer["node"], stage.node.name);
    assert_eq!(fates(answer)["clean"], 5);
    let client = stage.world.admin();
    assert!(pods::on_node(&client, &stage.node.name).await.expect("a list").is_empty());
    let drained = node(&stage, &stage.node).await;
    assert!(is_cordoned(&drained));
    assert!(drained.annotations()["spillway/claim"].contains("spot interruption"));
    let untouched = node(&stage, &neighbour).await;
    assert!(!is_cordoned(&untouched));
    assert!(!untouched.annotations().contains_key("spillway/claim"));
}

#[tokio::test]
async fn the_claim_comes_first_then_the_list_then_the_evictions_over_one_connection() {
    let stage = Stage::set("order").await;
    stage.deploy("web", 8, PodShape::default()).await;
    // On the wire: requests that come together the API server begins with as chance has it.
    let gateway = stage.through_gateway().await;

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    assert!(outcome.result.is_ok(), "{outcome:#?}");
    let order = gateway.rules().calls();
    assert_eq!(order[..3], ["patch nodes", "list pods", "create pods/eviction"], "{order:?}");
    // A watch may end and be made again: the API server ends one whose reader does not keep up with a burst of changes.
    let watches = order.iter().filter(|call| *call == "watch pods").count();
    assert!(watches >= 1, "{order:?}");
    assert_eq!(order.len() - watches, 8 + 2, "a claim, a list and an eviction for each pod: {order:?}");
    let network = gateway.network();
    assert_eq!((network.connections(), network.client_hellos()), (1, 1));
}

#[tokio::test]
async fn nothing_is_requested_before_the_claim_is_answered() {
    let stage = Stage::set("claim-first").await;
    stage.deploy("web", 1, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    let claim = Held::default();
    gateway.rules().add(Rule::new("patch nodes", Which::Nth(1), Fault::Hold(Side::After, claim.clone())));
    let (lambda, event) = (stage.lambda.clone(), stage.interrupt(SPOT).await);
    let drain = tokio::spawn(async move { lambda.invoke(event).await });

    // The API server has answered, and the function has not received it.
    claim.reached().await;
    let before = gateway.rules().calls();
    claim.release();

    let outcome = drain.await.expect("no panic");
    assert!(outcome.result.is_ok(), "{outcome:#?}");
    assert_eq!(before, ["patch nodes"]);
}

#[tokio::test]
async fn what_must_stay_stays_and_critical_pods_leave_last() {
    let mut stage = Stage::set("kinds").await;
    let client = stage.world.admin();
    let on_node = || PodShape::default().on_node(&stage.node.name);
    let name = &stage.name;
    let agent = pods::daemon_set(name, "agent", &on_node());
    pods::create(&client, &agent).await.expect("it is created");
    let job = pods::job(name, "job", &on_node().completes_after(Duration::ZERO));
    pods::create(&client, &job).await.expect("it is created");
    let bare = pods::bare_pod(name, "bare", &on_node());
    pods::create(&client, &bare).await.expect("it is created");
    pods::until_running_of(&client, name, "agent", 1).await.expect("it runs");
    pods::until_succeeded(&client, name, "job").await.expect("it ends");
    let slow = Duration::from_secs(2);
    stage.deploy("web", 2, PodShape::default().exits_after(slow)).await;
    // Critical pods may only live in kube-system.
    let dns = PodShape::default().priority_class("system-cluster-critical").on_node(&stage.node.name);
    pods::run_deployment(&client, "kube-system", "kinds-dns", 1, &dns).await.expect("it runs");

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(fates(answer), [("clean".to_owned(), 5), ("stayed".to_owned(), 1)].into(), "{answer:#}");
    let left = pods::on_node(&client, &stage.node.name).await.expect("a list");
    assert_eq!(left.iter().map(pod_app).collect::<Vec<_>>(), ["agent"]);
    let requests = stage.audit.requests().expect("the audit log");
    let evictions: Vec<_> = requests.iter().filter(|r| r.subresource == "eviction").collect();
    let last = evictions.last().expect("evictions");
    assert!(last.name.starts_with("kinds-dns"), "{evictions:?}");
    let waited = last.received.duration_since(evictions[0].received);
    assert!(waited.unsigned_abs() >= slow, "the critical pod went after {waited:?}");
}

fn pod_app(pod: &Pod) -> String {
    pod.labels().get("app").cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_pod_that_a_budget_holds_leaves_when_the_budget_has_room() {
    let mut stage = Stage::set("held").await;
    stage.deploy("web", 2, PodShape::default()).await;
    let client = stage.world.admin();
    pods::create(&client, &pods::budget(&stage.name, "web", 2)).await.expect("it is created");
    pods::until_budget_sees(&client, &stage.name, "web", 2).await.expect("it counts");

    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    let refused = stage.audit.wait_until("two refused evictions", WAIT, |requests| {
        requests.iter().filter(|r| r.subresource == "eviction" && r.code == Some(429)).count() >= 2
    });
    refused.await.expect("the budget refuses");
    assert_eq!(pods::on_node(&client, &stage.node.name).await.expect("a list").len(), 2);
    let budgets = Api::<PodDisruptionBudget>::namespaced(client, &stage.name);
    let room_for_two = Patch::Merge(json!({"spec": {"minAvailable": 0}}));
    budgets.patch("web", &PatchParams::default(), &room_for_two).await.expect("it is changed");

    let outcome = drain.await.expect("no panic");
    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(fates(answer)["clean"], 2);
    assert!(pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list").is_empty());
    assert_eq!(answer["pods"][0]["blocked_by"], "web");
    assert!(answer["pods"][0]["answers"]["blocked-by-budget"].as_u64() >= Some(1));
}

#[tokio::test]
async fn a_budget_that_never_has_room_is_respected_for_half_the_window_and_then_the_pod_is_deleted() {
    let mut stage = Stage::set("blocked").await;
    // It asks for more than there is, so that the last safe moment is half of the window.
    stage.deploy("web", 1, PodShape::default().grace(600)).await;
    let client = stage.world.admin();
    pods::create(&client, &pods::budget(&stage.name, "web", 1)).await.expect("it is created");
    pods::until_budget_sees(&client, &stage.name, "web", 1).await.expect("it counts");
    // Late: the window is twenty seconds, and the pod has half of it to go.
    let event = spot_notice(&stage.node.instance_id, jiff::Timestamp::now() - Duration::from_secs(100));

    let outcome = stage.lambda.invoke(&event).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained");
    let pod = &answer["pods"][0];
    assert_eq!((&pod["fate"], &pod["blocked_by"]), (&"forced".into(), &"web".into()));
    // The other half, less the two seconds of the margin. The notice's time is in whole seconds.
    assert!(pod["given_s"].as_u64().is_some_and(|given| (1..=8).contains(&given)), "{pod}");
    let requests = stage.audit.requests().expect("the audit log");
    let deletions: Vec<_> = requests.iter().filter(|r| r.verb == "delete").collect();
    assert_eq!(deletions.len(), 1, "{deletions:?}");
    let notice: jiff::Timestamp = event["time"].as_str().and_then(|time| time.parse().ok()).expect("a time");
    let window = (notice + SPOT).duration_since(outcome.started).as_secs_f64();
    let after = deletions[0].received.duration_since(outcome.started).as_secs_f64();
    // Two clocks may be a little apart.
    assert!(after > window / 2.0 - 0.1, "it was deleted after {after} s of a window of {window}");
}

#[tokio::test]
async fn a_pod_that_does_not_go_ends_as_failed_and_is_named_in_the_receipt() {
    let stage = Stage::set("stuck").await;
    let client = stage.world.admin();
    let lost = PodShape::default().grace(1).with(json!({"metadata": {"annotations": {"spillway.test/lost": "true"}}}));
    let lost = pods::bare_pod(&stage.name, "lost", &lost.on_node(&stage.node.name));
    pods::create(&client, &lost).await.expect("it is created");
    pods::until_running_on(&client, &stage.node.name, 1).await.expect("it runs");
    // Late, so that the window is short.
    let event = spot_notice(&stage.node.instance_id, jiff::Timestamp::now() - Duration::from_secs(115));

    let outcome = stage.deliver(&event).await;

    let error = outcome.result.as_ref().expect_err("it fails");
    assert_eq!(error.error_type, "PodsLost");
    assert_eq!(
        error.message,
        format!("the one pod that had to leave was still on node {} when the time was up", stage.node.name)
    );
    let receipt = receipt(&outcome);
    assert_eq!(receipt["ending"], "failed");
    assert_eq!(receipt["pods"][0]["fate"], "lost");
    assert_eq!(receipt["pods"][0]["why"], "it was still shutting down");
}

#[tokio::test]
async fn a_pod_that_moved_to_another_node_under_its_name_is_left_alone() {
    let mut stage = Stage::set("moved").await;
    let other = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    let client = stage.world.admin();
    let bare = |node: &str| pods::bare_pod("moved", "db-0", &PodShape::default().on_node(node));
    // Its kubelet will not say that it has stopped: kwok would, by its name, when the next one may have it.
    let mut old = bare(&stage.node.name);
    old.annotations_mut().insert("spillway.test/lost".to_owned(), "true".to_owned());
    pods::create(&client, &old).await.expect("it is created");
    pods::until_running_on(&client, &stage.node.name, 1).await.expect("it runs");
    let moved = Api::<Pod>::namespaced(client.clone(), "moved");

    let mut new = None;
    let outcome = stage
        .drain_with("create pods/eviction", async || {
            moved.delete("db-0", &DeleteParams::default().grace_period(0)).await.expect("it is deleted");
            new = pods::create(&client, &bare(&other.name)).await.expect("it is created again").uid();
        })
        .await;

    assert_eq!(outcome.result.as_ref().expect("it drains")["ending"], "drained", "{outcome:#?}");
    let evicted = stage.audit.requests().expect("the audit log").into_iter().find(|r| r.subresource == "eviction");
    assert_eq!(evicted.expect("an eviction was asked for").code, Some(409));
    let now = moved.get("db-0").await.expect("it is there");
    assert_eq!(now.uid(), new);
    assert_eq!(now.metadata.deletion_timestamp, None, "the wrong pod was evicted");
}

#[tokio::test]
async fn a_pod_that_asks_for_more_than_is_left_gets_what_is_left() {
    let stage = Stage::set("grace").await;
    let client = stage.world.admin();
    let stubborn = PodShape::default().grace(600).exits_after(Duration::from_secs(4));
    stage.deploy("stubborn", 1, stubborn).await;
    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });

    let given = leaving_grace(&client, &stage.name).await;
    assert!((100..=118).contains(&given), "it was given {given} s");
    let outcome = drain.await.expect("no panic");
    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["pods"][0]["fate"], "clamped");
    assert_eq!(answer["pods"][0]["grace_s"], 600);
    assert_eq!(answer["pods"][0]["given_s"], given);
}

/// The grace that the API server noted on a pod that is being deleted.
async fn leaving_grace(client: &kube::Client, namespace: &str) -> i64 {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let all = kube::api::WatchParams::default();
    spillway_bed::watch::until(&pods, &all, "a pod that leaves", WAIT, |pods| {
        let given = pods.values().find_map(|pod| pod.metadata.deletion_grace_period_seconds);
        given.ok_or_else(|| "none leaves".to_owned())
    })
    .await
    .expect("a pod leaves")
}

#[tokio::test]
async fn a_node_by_another_name_is_found_by_its_provider_id() {
    let name = "named-by-hand".to_owned();
    let stage =
        Stage::set_with("custom-name", NodeOptions { name: Some(name.clone()), ..NodeOptions::default() }).await;
    stage.deploy("web", 2, PodShape::default()).await;

    let outcome = stage.deliver(spot_notice(&stage.node.instance_id, jiff::Timestamp::now())).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!((&answer["ending"], &answer["node"]), (&"drained".into(), &name.into()));
}

#[tokio::test]
async fn another_node_that_has_the_name_is_not_touched() {
    // The instance's node goes by another name, and its private DNS name is taken by a stranger's.
    let stage =
        Stage::set_with("stranger", NodeOptions { name: Some("stranger-own".to_owned()), ..NodeOptions::default() })
            .await;
    let dns_name = stage.node.private_dns_name.clone();
    let stranger =
        stage.world.add_node(NodeOptions { name: Some(dns_name), ..NodeOptions::default() }).await.expect("it joins");

    let outcome = stage.deliver(spot_notice(&stage.node.instance_id, jiff::Timestamp::now())).await;

    assert_eq!(outcome.result.as_ref().expect("it drains")["node"], "stranger-own");
    assert!(!is_cordoned(&node(&stage, &stranger).await));
}

#[tokio::test]
async fn every_line_of_a_drain_says_whose_it_is() {
    let stage = Stage::set("whose-line").await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let notice = stage.interrupt(SPOT).await;
    let event_id = notice["id"].clone();

    let outcome = stage.lambda.invoke(notice).await;

    assert_eq!(outcome.result.as_ref().expect("it drains")["ending"], "drained", "{outcome:#?}");
    let lines = outcome.logs.iter().map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"));
    // The receipt and its metrics name the notice by themselves.
    let lines: Vec<_> = lines.filter(|line| line.get("receipt").is_none() && line.get("_aws").is_none()).collect();
    for line in &lines {
        let span = &line["span"];
        assert_eq!(span["request.id"], outcome.request_id, "{line}");
        assert_eq!(span["event.id"], event_id, "{line}");
        assert_eq!(span["instance.id"], stage.node.instance_id, "{line}");
    }
    let of_pods: Vec<_> = lines.iter().filter(|line| line.get("pod.name").is_some()).collect();
    assert!(of_pods.len() >= 4, "each pod is evicted and gone: {lines:#?}");
    for line in of_pods {
        assert_eq!(line["span"]["cluster.name"], outcome.result.as_ref().expect("it drains")["cluster"], "{line}");
        assert_eq!(line["span"]["node.name"], stage.node.name, "{line}");
    }
}

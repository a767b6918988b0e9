//! The edges of a drain: no harm where nobody knows the deadline, no loop, no deletion that finds no stream.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::audit::Request;
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Answer, Fault, Rule, Which};
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, ended, fates, receipt, sample, spot_notice};

const QUICK: Duration = Duration::from_secs(1);

/// EC2 said so long ago that the instance stops, though it still says that it runs.
fn stopping(stage: &Stage, ago_s: i64) -> Value {
    let time = Timestamp::now() - SignedDuration::from_secs(ago_s);
    let mut notice = sample("state-change-stopping");
    notice["id"] = json!(format!("stopping-{}", stage.node.instance_id));
    notice["time"] = json!(time.round(Unit::Second).expect("a time of these days").to_string());
    notice["detail"]["instance-id"] = json!(stage.node.instance_id);
    notice
}

/// A spot notice that leaves so many seconds.
fn spot_notice_with(stage: &Stage, left_s: u64) -> Value {
    spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(120 - left_s))
}

fn evictions(requests: &[Request]) -> usize {
    requests.iter().filter(|request| request.subresource == "eviction" && request.code == Some(201)).count()
}

#[tokio::test]
async fn when_nobody_knows_the_deadline_every_pod_keeps_its_own_grace() {
    let stage = Stage::set("own-grace").await;
    stage.deploy("web", 2, PodShape::default().grace(30).exits_after(QUICK)).await;

    let outcome = stage.notify(&stopping(&stage, 0)).await;

    let receipt = receipt(&outcome);
    assert_eq!((ended(&outcome).0.as_str(), fates(&receipt)["clean"]), ("drained", 2), "{receipt:#}");
    let given: Vec<&Value> = receipt["pods"].as_array().into_iter().flatten().map(|pod| &pod["given_s"]).collect();
    assert!(given.iter().all(|given| given.is_null()), "none got less than it asks for: {receipt:#}");
    assert!(receipt["notice"]["deadline"].is_null(), "{receipt:#}");
}

/// Its kubelet would have given each pod as much: less would cost the pods and buy nothing.
#[tokio::test]
async fn a_spot_notice_that_comes_past_its_time_takes_no_grace_from_a_pod() {
    let mut stage = Stage::set("past-its-time").await;
    let client = stage.world.admin();
    let shape = PodShape::default().grace(30).exits_after(Duration::from_secs(12)).bound_to(&stage.node.name);
    for name in ["free", "held"] {
        pods::create(&client, &pods::bare_pod(&stage.name, name, &shape)).await.expect("a pod");
    }
    pods::create(&client, &pods::budget(&stage.name, "held", 1)).await.expect("a budget");
    pods::until_running_on(&client, &stage.node.name, 2).await.expect("they run");
    pods::until_budget_sees(&client, &stage.name, "held", 1).await.expect("it counts");
    let late = spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(125));

    let outcome = stage.lambda.invoke(late).await;

    let told = receipt(&outcome);
    assert_eq!(ended(&outcome).0, "drained", "{told:#}");
    assert_eq!((fates(&told)["clean"], fates(&told)["forced"]), (1, 1), "{told:#}");
    let given: Vec<&Value> = told["pods"].as_array().into_iter().flatten().map(|pod| &pod["given_s"]).collect();
    assert!(given.iter().all(|given| given.is_null()), "none got less than it asks for: {told:#}");
    let requests = stage.audit.requests().expect("the audit log");
    let count = |verb, resource| requests.iter().filter(|r| r.verb == verb && r.subresource == resource).count();
    assert_eq!((count("create", "eviction"), count("delete", "")), (2, 1), "{requests:#?}");
}

/// Its kubelet dies seconds later, and nobody says any more that the ordinary pods have gone.
#[tokio::test]
async fn of_an_instance_that_stops_critical_pods_wait_for_no_others() {
    let mut stage = Stage::set("no-order").await;
    let client = stage.world.admin();
    let web = PodShape::default().grace(10).exits_after(Duration::from_secs(8)).bound_to(&stage.node.name);
    pods::create(&client, &pods::bare_pod(&stage.name, "web", &web)).await.expect("a pod");
    // Critical pods may only live in kube-system.
    let dns = PodShape::default().priority_class("system-cluster-critical").bound_to(&stage.node.name);
    pods::create(&client, &pods::bare_pod("kube-system", "no-order-dns", &dns)).await.expect("a pod");
    pods::until_running_on(&client, &stage.node.name, 2).await.expect("they run");

    let outcome = stage.notify(&stopping(&stage, 0)).await;

    let told = receipt(&outcome);
    assert_eq!((ended(&outcome).0.as_str(), fates(&told)["clean"]), ("drained", 2), "{told:#}");
    let requests = stage.audit.requests().expect("the audit log");
    let asked =
        requests.iter().position(|r| r.subresource == "eviction" && r.name == "no-order-dns").expect("it is evicted");
    let watched = requests.iter().position(|r| r.resource == "pods" && r.verb == "watch").expect("they are watched");
    assert!(asked < watched, "it is told with the first ones: {requests:#?}");
}

/// It was asked at the very moment from which it is forced: two nodes that went together took both pods of a Service at once.
#[tokio::test]
async fn critical_pods_budget_has_time_beside_an_annotated_pod() {
    let mut stage = Stage::set("time-for-a-budget").await;
    let (client, app) = (stage.world.admin(), "time-for-a-budget-dns");
    let annotation = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let shape = PodShape::default().grace(1).bound_to(&stage.node.name);
    pods::create(&client, &pods::bare_pod(&stage.name, "web", &shape.clone().with(annotation))).await.expect("a pod");
    // Critical pods may only live in kube-system.
    let dns = shape.priority_class("system-cluster-critical");
    pods::create(&client, &pods::bare_pod("kube-system", app, &dns)).await.expect("a pod");
    pods::create(&client, &pods::budget("kube-system", app, 1)).await.expect("a budget");
    pods::until_running_on(&client, &stage.node.name, 2).await.expect("they run");
    pods::until_budget_sees(&client, "kube-system", app, 1).await.expect("it counts");
    let (lambda, notice) = (stage.lambda.clone(), spot_notice_with(&stage, 30));
    let budget_works = async {
        let refused = |requests: &[Request]| requests.iter().any(|r| r.code == Some(429));
        stage.audit.wait_until("a refused eviction", Duration::from_mins(1), refused).await.expect("it refuses");
        let budgets = Api::<PodDisruptionBudget>::namespaced(client, "kube-system");
        budgets.delete(app, &DeleteParams::default()).await.expect("it is there");
    };

    let (outcome, ()) = tokio::join!(lambda.invoke(notice), budget_works);

    let told = receipt(&outcome);
    assert_eq!(fates(&told), [("clean".to_owned(), 2)].into(), "{told:#}");
    let requests = stage.audit.requests().expect("the audit log");
    let deleted: Vec<&str> = requests.iter().filter(|r| r.verb == "delete").map(|r| r.name.as_str()).collect();
    assert!(deleted.is_empty(), "both leave by an eviction: {deleted:?}");
}

/// Here no ordinary pod is blocked: one takes its whole grace to leave.
#[tokio::test]
async fn a_critical_pods_budget_has_time_though_an_ordinary_pod_leaves_to_the_end() {
    let mut stage = Stage::set("time-beside-slow").await;
    let (client, app) = (stage.world.admin(), "time-beside-slow-dns");
    let web = PodShape::default().grace(60).exits_after(Duration::from_mins(1)).bound_to(&stage.node.name);
    pods::create(&client, &pods::bare_pod(&stage.name, "web", &web)).await.expect("a pod");
    // Critical pods may only live in kube-system.
    let dns = PodShape::default().grace(1).bound_to(&stage.node.name).priority_class("system-cluster-critical");
    pods::create(&client, &pods::bare_pod("kube-system", app, &dns)).await.expect("a pod");
    pods::create(&client, &pods::budget("kube-system", app, 1)).await.expect("a budget");
    pods::until_running_on(&client, &stage.node.name, 2).await.expect("they run");
    pods::until_budget_sees(&client, "kube-system", app, 1).await.expect("it counts");

    stage.lambda.invoke(spot_notice_with(&stage, 30)).await;

    let requests = stage.audit.requests().expect("the audit log");
    let first = |is: fn(&&Request) -> bool| {
        requests.iter().filter(|request| request.name == app).find(is).map(|request| request.received)
    };
    let asked = first(|request| request.subresource == "eviction").expect("it is asked");
    let deleted = first(|request| request.verb == "delete").expect("its budget never lets go");
    let before = deleted.duration_since(asked);
    assert!(before >= SignedDuration::from_secs(10), "it was asked {before:#} before it was deleted: {requests:#?}");
}

#[tokio::test]
async fn a_stopping_that_comes_late_leaves_a_node_alone_whose_instance_runs_again() {
    let stage = Stage::set("runs-again").await;
    stage.deploy("web", 1, PodShape::default()).await;

    let outcome = stage.notify(&stopping(&stage, 180)).await;

    let reason = format!("instance {} runs again", stage.node.instance_id);
    assert_eq!(ended(&outcome), ("ignored".to_owned(), reason));
    assert!(stage.is_untouched().await);
}

/// A replacement is there as soon as the pod begins to shut down.
#[tokio::test]
async fn pod_that_tolerates_the_cordon_returns_and_is_not_waited_for() {
    let mut stage = Stage::set("returned").await;
    let tolerant = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
    let shape = PodShape::default().exits_after(QUICK).on_node(&stage.node.name).with(tolerant);
    let client = stage.world.admin();
    pods::create(&client, &pods::deployment(&stage.name, "pinned", 1, &shape)).await.expect("a deployment");
    pods::until_running_on(&client, &stage.node.name, 1).await.expect("it runs");

    let outcome = stage.lambda.invoke(stage.interrupt(Duration::from_secs(120)).await).await;

    let told = receipt(&outcome);
    assert_eq!(ended(&outcome).0, "drained", "{told:#}");
    assert_eq!((fates(&told)["clean"], fates(&told)["returned"]), (1, 1), "{told:#}");
    let why = told["pods"].as_array().into_iter().flatten().find_map(|pod| pod["why"].as_str());
    assert_eq!(why, Some("it tolerates the cordon, and came after it"));
    assert_eq!(evictions(&stage.audit.requests().expect("the audit log")), 1);
}

#[tokio::test]
async fn a_webhook_that_answers_429_blocks_its_pod_which_is_deleted_in_time() {
    let stage = Stage::set("webhook-429").await;
    stage.deploy("vm", 1, PodShape::default().grace(1).exits_after(QUICK)).await;
    let gateway = stage.through_gateway().await;
    let no = "admission webhook \"virt.example.com\" denied the request: the machine is being moved";
    gateway.rules().add(Rule::new("create pods/eviction", Which::All, Fault::Answer(Answer::denied(429, no))));

    let outcome = stage.lambda.invoke(spot_notice_with(&stage, 20)).await;

    let receipt = receipt(&outcome);
    assert_eq!(fates(&receipt)["forced"], 1, "{receipt:#}");
    assert!(receipt["pods"][0]["why"].as_str().is_some_and(|why| why.contains("virt.example.com")), "{receipt:#}");
}

/// Each namespace's watch of budgets kept a stream, and a connection has a hundred: no deletion found one.
#[tokio::test]
async fn pods_that_budgets_of_many_namespaces_block_are_all_deleted_in_time() {
    const NAMESPACES: usize = 110;
    let mut stage = Stage::set("many-budgets").await;
    let client = stage.world.admin();
    let names: Vec<String> = (0..NAMESPACES).map(|n| format!("{}-{n}", stage.name)).collect();
    let shape = PodShape::default().grace(10).exits_after(QUICK).bound_to(&stage.node.name);
    for name in &names {
        pods::create_namespace(&client, name).await.expect("a namespace");
        pods::create(&client, &pods::budget(name, "held", 1)).await.expect("a budget");
        pods::create(&client, &pods::bare_pod(name, "held", &shape)).await.expect("a pod");
    }
    pods::until_running_on(&client, &stage.node.name, NAMESPACES).await.expect("they run");
    for name in &names {
        pods::until_budget_sees(&client, name, "held", 1).await.expect("it counts");
    }

    let outcome = stage.lambda.invoke(spot_notice_with(&stage, 40)).await;

    let told = receipt(&outcome);
    assert_eq!(fates(&told)["forced"], NAMESPACES, "{:#?}", ended(&outcome));
    let requests = stage.audit.requests().expect("the audit log");
    let watches = requests.iter().filter(|r| r.resource == "poddisruptionbudgets" && r.verb == "watch").count();
    assert!(watches < 10, "{watches} watches of budgets");
}

#[tokio::test]
async fn a_node_that_a_policy_does_not_let_us_cordon_is_emptied_all_the_same_if_its_instance_goes() {
    for (name, reason) in [("not-cordoned", None), ("not-cordoned-403", Some("Forbidden"))] {
        let stage = Stage::set(name).await;
        stage.deploy("web", 2, PodShape::default().exits_after(QUICK)).await;
        stage.refuse_changes_of_node(reason).await;

        let outcome = match reason {
            Some(_) => stage.lambda.invoke(stage.interrupt(Duration::from_secs(120)).await).await,
            None => stage.notify(&stopping(&stage, 0)).await,
        };

        let told = receipt(&outcome);
        assert_eq!((ended(&outcome).0.as_str(), fates(&told)["clean"]), ("drained", 2), "{told:#}");
        let not_cordoned = told["not_cordoned"].as_str().unwrap_or_default();
        assert!(not_cordoned.contains("nobody cordons here"), "{told:#}");
        assert!(told["steps"].as_array().is_some_and(|steps| steps.iter().all(|step| step["step"] != "claimed")));
        assert!(stage.is_untouched().await);
    }
}

/// Its own pods may run on the nodes that go.
#[tokio::test]
async fn a_webhook_on_nodes_that_is_down_keeps_no_pod_and_the_node_is_cordoned_when_it_is_back() {
    let mut stage = Stage::set("webhook-down").await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(25))).await;
    stage.ask_webhook_that_is_down().await;
    let (lambda, notice) = (stage.lambda.clone(), stage.interrupt(Duration::from_secs(120)).await);
    let is_back = async {
        stage.until_evicted(2).await;
        assert!(stage.is_untouched().await);
        stage.ask_webhook_no_more().await;
    };

    let (outcome, ()) = tokio::join!(lambda.invoke(notice), is_back);

    let told = receipt(&outcome);
    assert_eq!((ended(&outcome).0.as_str(), fates(&told)["clean"]), ("drained", 2), "{told:#}");
    let without = outcome.logs.iter().find(|line| line.contains("evicting its pods all the same"));
    assert!(without.is_some_and(|line| line.contains("failed calling webhook")), "{outcome:#?}");
    assert!(stage.is_cordoned().await);
    assert!(told["not_cordoned"].is_null() && told["steps"].to_string().contains("claimed"), "{told:#}");
}

#[tokio::test]
async fn a_node_that_somebody_uncordons_in_mid_drain_is_cordoned_again_and_what_came_leaves() {
    let mut stage = Stage::set_in_group("uncordoned", Hook::terminate("spillway")).await;
    stage.deploy("web", 1, PodShape::default().exits_after(Duration::from_secs(20))).await;
    let (client, name, lambda) = (stage.world.admin(), stage.node.name.clone(), stage.lambda.clone());
    let notice = stage.terminate().await;
    let uncordoned = async {
        stage.until_evicted(1).await;
        stage.change_node(&json!({"spec": {"unschedulable": null}})).await;
        let came = pods::bare_pod(&stage.name, "came", &PodShape::default().bound_to(&name));
        pods::create(&client, &came).await.expect("a pod");
    };

    let (outcome, ()) = tokio::join!(lambda.invoke(notice), uncordoned);

    let told = receipt(&outcome);
    assert_eq!((ended(&outcome).0.as_str(), fates(&told).values().sum()), ("drained", 2), "{told:#}");
    let requests = stage.audit.requests().expect("the audit log");
    assert_eq!(evictions(&requests), 2);
    let patches = requests.iter().filter(|request| request.resource == "nodes" && request.verb == "patch");
    let patches = patches.filter(|request| request.code == Some(200));
    assert_eq!(patches.count(), 2, "the claim, and the second cordon");
}

#[tokio::test]
async fn the_pods_of_another_instance_whose_node_takes_the_name_in_mid_drain_are_left_alone() {
    let mut stage = Stage::set("successor").await;
    stage.deploy("web", 1, PodShape::default().exits_after(Duration::from_secs(20))).await;
    let (client, name, world) = (stage.world.admin(), stage.node.name.clone(), stage.world);
    let (lambda, notice) = (stage.lambda.clone(), stage.interrupt(Duration::from_secs(120)).await);
    let succeeded = async {
        stage.until_evicted(1).await;
        Api::<Node>::all(client.clone()).delete(&name, &DeleteParams::default()).await.expect("it was there");
        world.add_node(NodeOptions { name: Some(name.clone()), ..NodeOptions::default() }).await.expect("it joins");
        let theirs = pods::bare_pod(&stage.name, "theirs", &PodShape::default().bound_to(&name));
        pods::create(&client, &theirs).await.expect("a pod")
    };

    let (outcome, theirs) = tokio::join!(lambda.invoke(notice), succeeded);

    let told = receipt(&outcome);
    assert_eq!((ended(&outcome).0.as_str(), fates(&told).values().sum()), ("drained", 1), "{told:#}");
    assert_eq!(evictions(&stage.audit.requests().expect("the audit log")), 1);
    let theirs =
        Api::<Pod>::namespaced(client, &stage.name).get_metadata(&theirs.name_any()).await.expect("it is there");
    assert!(theirs.metadata.deletion_timestamp.is_none());
}

/// The garbage collector removes its pods by force a minute later, and their containers still have the rest of their grace.
#[tokio::test]
async fn of_a_node_that_somebody_deletes_in_mid_drain_no_pod_is_called_gone_that_may_still_run() {
    let mut stage = Stage::set_in_group("deleted-node", Hook::terminate("spillway")).await;
    // Longer than the garbage collector takes: it looks every 20 s, and waits for 40 s.
    stage.deploy("web", 1, PodShape::default().grace(90).exits_after(Duration::from_secs(300))).await;
    let (client, name, lambda) = (stage.world.admin(), stage.node.name.clone(), stage.lambda.clone());
    let notice = stage.terminate().await;
    let deleted = async {
        stage.until_evicted(1).await;
        Api::<Node>::all(client).delete(&name, &DeleteParams::default()).await.expect("it was there");
    };

    let (outcome, ()) = tokio::join!(lambda.invoke(notice), deleted);

    let told = receipt(&outcome);
    assert_eq!(
        (ended(&outcome).0.as_str(), fates(&told)),
        ("drained", [("unconfirmed".to_owned(), 1)].into()),
        "{told:#}"
    );
    assert_eq!(told["hook"]["state"], "completed", "{told:#}");
}

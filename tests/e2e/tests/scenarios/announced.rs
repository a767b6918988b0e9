//! What is told on the event bus: that a drain has begun, once its first evictions are answered, and its receipt, last of
//! all. None of it is worth anything to the drain.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::audit::Request;
use spillway_bed::aws::{Fault as AwsFault, Hook};
use spillway_bed::gateway::{Fault, Gateway, Rule, Rules, Which};
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, fates, receipt, spot_notice};

use crate::hooks::{nobody_waits, often};

const SPOT: Duration = Duration::from_secs(120);
const BEGUN: &str = "Spillway Drain Begun";
const RECEIPT: &str = "Spillway Receipt";
/// When it is told at the latest that a drain has begun, if an eviction is slow to be answered.
const AT_THE_LATEST: SignedDuration = SignedDuration::from_secs(1);

/// What a bus that takes nothing costs.
const THE_WARNINGS: [&str; 2] = [
    "cannot put \"Spillway Drain Begun\" on the event bus; the drain goes on",
    "cannot put \"Spillway Receipt\" on the event bus; the receipt is in the log",
];

async fn drained(stage: &Stage) -> Outcome {
    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;
    assert_eq!(receipt(&outcome)["ending"], "drained", "{outcome:#?}");
    outcome
}

/// What has been told so far: how many drains have begun, and how each ended.
async fn told(stage: &Stage) -> (usize, Vec<Value>) {
    let endings = stage.told(RECEIPT).await.into_iter().map(|mut receipt| receipt["ending"].take());
    (stage.told(BEGUN).await.len(), endings.collect())
}

/// The warnings of an invocation that speak of the bus.
fn warnings(outcome: &Outcome) -> Vec<String> {
    let lines = outcome.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let warnings = lines.filter(|line| line["level"] == "WARN" && line.to_string().contains("events:PutEvents"));
    warnings.map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
}

fn is_eviction(request: &Request) -> bool {
    request.subresource == "eviction"
}

#[tokio::test]
async fn that_a_drain_has_begun_is_told_when_its_first_evictions_are_answered() {
    let mut stage = Stage::set("told-begun").await;
    stage.deploy("web", 3, PodShape::default().exits_after(Duration::from_secs(2))).await;
    let on_node = pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list");

    drained(&stage).await;

    let calls = stage.world.aws_side().calls(Some(stage.lambda.access_key_id())).await.expect("the journal");
    let told = calls.iter().find(|call| call.action == "PutEvents").expect("it is told");
    let told = Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(told.at);
    let requests = stage.audit.requests().expect("the audit log");
    // Its second begins when the claim is answered, at the earliest.
    let claim = requests.iter().find(|request| request.verb == "patch" && request.resource == "nodes");
    let late = claim.and_then(|claim| claim.done).expect("it is claimed") + AT_THE_LATEST;
    let evictions: Vec<_> = requests.into_iter().filter(is_eviction).collect();
    assert_eq!(evictions.len(), 3, "{evictions:?}");
    for eviction in &evictions {
        let answered = eviction.done.expect("it is answered");
        assert!(answered <= told || late <= told, "told at {told}, and answered at {answered}: {eviction:?}");
    }
    let begun = stage.told(BEGUN).await.remove(0);
    assert_eq!((&begun["node"], &begun["ending"]), (&json!(stage.node.name), &Value::Null), "{begun:#}");
    assert_eq!(begun["node_labels"]["stage"], stage.name);
    let on_node = on_node.iter().map(|pod| json!({"pod": format!("{}/{}", stage.name, pod.name_any())}));
    assert_eq!(begun["pods"], Value::Array(on_node.collect()));
    assert_eq!(begun["reason"], format!("node {} is being drained for the spot interruption", stage.node.name));
}

#[tokio::test]
async fn the_receipt_is_told_last_of_all_and_is_the_one_in_the_log_with_the_nodes_labels() {
    let stage = Stage::set_in_group("told-receipt", Hook::terminate("spillway")).await;
    stage.deploy("web", 2, PodShape::default()).await;

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let [mut told]: [Value; 1] = stage.told(RECEIPT).await.try_into().expect("it is told once");
    let labels = told.as_object_mut().and_then(|told| told.remove("node_labels")).expect("it has the labels");
    assert_eq!(labels["stage"], stage.name);
    assert_eq!(told, receipt(&outcome));
    let whose = [&told["account"], &told["region"], &told["zone"], &told["auto_scaling_group"]];
    let world = stage.world;
    assert_eq!(whose, [&json!(world.account), &json!(world.region), &json!(stage.node.zone), &json!(stage.name)]);
    assert!(told["instance_type"].is_string(), "{told:#}");
    let calls = stage.aws_calls().await;
    let completed = calls.iter().position(|call| call == "autoscaling:CompleteLifecycleAction");
    let last = calls.iter().rposition(|call| call == "events:PutEvents");
    assert!(completed.is_some() && completed < last && last == Some(calls.len() - 1), "{calls:?}");
}

#[tokio::test]
async fn of_several_notices_for_a_node_one_tells_that_its_drain_has_begun() {
    let stage = Stage::set_in_group("told-once", Hook::terminate("spillway")).await;
    // Slow enough to be still there when the other comes to look.
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(15))).await;
    let (spot, terminate) = (spot_notice(&stage.node.instance_id, Timestamp::now()), stage.terminate().await);

    tokio::join!(stage.lambda.invoke(&spot), stage.lambda.invoke(&terminate));

    let (begun, mut endings) = told(&stage).await;
    endings.sort_by_key(Value::to_string);
    assert_eq!((begun, endings), (1, vec![json!("drained"), json!("joined")]));
}

#[tokio::test]
async fn a_drain_of_several_invocations_begins_once_and_each_tells_its_ending() {
    let timeout = Duration::from_secs(15);
    let stage =
        Stage::set_in_group("told-continued", Hook::terminate("spillway")).await.with_invocations_of(timeout).await;
    stage.deploy("slow", 1, PodShape::default().exits_after(Duration::from_secs(12))).await;

    stage.lambda.invoke(stage.terminate().await).await;
    stage.lambda.invoke(stage.continuation().await).await;

    assert_eq!(told(&stage).await, (1, vec![json!("continued"), json!("drained")]));
}

#[tokio::test]
async fn a_notice_that_came_to_nothing_is_not_told() {
    let stage = Stage::set("told-nothing").await;

    let outcome = stage.lambda.invoke(spot_notice("i-0aaaaaaaaaaaaaaaa", Timestamp::now())).await;

    assert_eq!(receipt(&outcome)["ending"], "ignored", "{outcome:#?}");
    assert_eq!(told(&stage).await, (0, vec![]));
}

#[tokio::test]
async fn a_drain_that_its_hook_does_not_wait_for_is_told_from_its_begin_to_its_end() {
    let stage = Stage::set_in_group("told-stopped", often()).await;
    // Before the hook's time runs.
    stage.lambda.initialize().await.expect("it starts");
    stage.deploy("slow", 1, PodShape::default().exits_after(Duration::from_secs(25))).await;
    let (lambda, event) = (stage.lambda.clone(), stage.terminate().await);
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    while stage.told(BEGUN).await.is_empty() {
        assert!(!drain.is_finished(), "it ended, and had not begun");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let fault = nobody_waits(&stage, "RecordLifecycleActionHeartbeat");
    stage.world.aws_side().add_fault(&fault).await.expect("a fault");

    let outcome = drain.await.expect("no panic");

    assert_eq!(told(&stage).await, (1, vec![json!("ignored")]), "{outcome:#?}");
}

#[tokio::test]
async fn a_bus_that_refuses_costs_a_warning_for_each_event() {
    let stage = Stage::set("told-refused").await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let denied = AwsFault {
        status: Some(400),
        code: Some("AccessDeniedException".to_owned()),
        ..AwsFault::of(stage.lambda.access_key_id(), "events", "PutEvents")
    };
    stage.world.aws_side().add_fault(&denied).await.expect("a fault");

    let outcome = drained(&stage).await;

    assert_eq!(fates(&receipt(&outcome))["clean"], 2);
    assert_eq!(warnings(&outcome), THE_WARNINGS);
}

#[tokio::test]
async fn a_bus_that_never_answers_costs_a_warning_for_each_event_and_the_hook_does_not_wait_for_it() {
    let stage = Stage::set_in_group("told-silence", Hook::terminate("spillway")).await;
    stage.deploy("web", 2, PodShape::default()).await;
    let silent = Gateway::before_aws(stage.world, Rules::default()).expect("a gateway");
    silent.rules().add(Rule::new("events:PutEvents", Which::All, Fault::Silence));
    let stage = stage.with_settings(&[("AWS_ENDPOINT_URL", &silent.url())]).await;

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let receipt = receipt(&outcome);
    assert_eq!((&receipt["ending"], &receipt["hook"]["state"]), (&json!("drained"), &json!("completed")));
    assert_eq!(warnings(&outcome), THE_WARNINGS);
    let steps = receipt["steps"].as_array().expect("steps");
    assert_eq!(steps.last().expect("steps")["step"], "completed", "{receipt:#}");
    // An event is given up after three seconds, while late pods are watched for. No hook is held for it beyond that.
    let at = |name| steps.iter().find(|step| step["step"] == name).and_then(|step| step["at_ms"].as_i64());
    let late_pods = receipt["after_drain"]["late_pods_ms"].as_i64().expect("they were watched for");
    let over = at("drained").expect("it is drained") + late_pods;
    assert!(at("completed").expect("it is completed") < over + 2_500, "{receipt:#}");
}

/// The requests of a drain to the API server up to the last eviction, by their names, without the events that it posts: those go
/// after the evictions that they are about.
async fn asked_up_to_the_last_eviction(name: &str, settings: &[(&str, &str)]) -> (Stage, Vec<String>) {
    let mut stage = Stage::set(name).await.with_settings(settings).await;
    stage.deploy("web", 12, PodShape::default().exits_after(Duration::from_secs(1))).await;
    // It is evicted when the others have gone. Critical pods may only live in kube-system.
    let dns = PodShape::default().exits_after(Duration::from_secs(1)).on_node(&stage.node.name);
    let dns = dns.priority_class("system-cluster-critical");
    let (client, app) = (stage.world.admin(), format!("{name}-dns"));
    pods::run_deployment(&client, "kube-system", &app, 1, &dns).await.expect("it runs");

    drained(&stage).await;

    let requests = stage.audit.requests().expect("the audit log");
    let last = requests.iter().rposition(is_eviction).expect("evictions");
    let asked = requests[..=last].iter().filter(|request| request.resource != "events");
    let asked = asked.map(|request| format!("{} {} {}", request.verb, request.resource, request.subresource));
    let mut asked: Vec<String> = asked.collect();
    // With which of several that are sent side by side the API server begins is chance.
    asked.sort();
    // A watch may end and be made again: the API server ends one whose reader does not keep up with a burst of changes.
    asked.dedup_by(|one, other| one == other && one.starts_with("watch"));
    (stage, asked)
}

#[tokio::test]
async fn with_node_events_no_more_and_nothing_else_is_asked_up_to_the_last_eviction_than_without() {
    let told_to_nodes = [("SPILLWAY_NODE_EVENTS", "true")];
    let nothing = [("SPILLWAY_NODE_EVENTS", "false")];

    let ((mut loud, with_everything), (mut quiet, with_nothing)) = tokio::join!(
        asked_up_to_the_last_eviction("speed-loud", &told_to_nodes),
        asked_up_to_the_last_eviction("speed-quiet", &nothing)
    );

    assert_eq!(with_everything, with_nothing);
    let evictions = with_nothing.iter().filter(|asked| *asked == "create pods eviction").count();
    assert_eq!((evictions, with_nothing.len()), (13, 13 + 3), "a claim, a list and a watch beside: {with_nothing:#?}");
    let posted = |stage: &mut Stage| stage.requests().iter().filter(|asked| asked.starts_with("create events")).count();
    assert!(posted(&mut loud) > 0 && posted(&mut quiet) == 0, "{:#?}", loud.requests());
    assert_eq!((told(&loud).await, told(&quiet).await), ((1, vec![json!("drained")]), (1, vec![json!("drained")])));
}

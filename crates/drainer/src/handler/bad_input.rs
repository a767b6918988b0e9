//! Tests that bad input has the expected result without unexpected calls, and that the next notice's node is still drained.

use std::iter;

use serde_json::{Value, json};

use super::tests::{OURS, event, handled, spot};
use crate::receipt::Ending::{self, Continued, Done, Drained, Ignored};
use crate::test_support::api_server::{NODE, NODE_PATH, list, node, pod, status, watched};
use crate::test_support::aws::{described, instances, invoked, not_scheduled, put_event};
use crate::test_support::context::TestContext;
use crate::test_support::script::{Expected, call};

/// Test case: an event, the expected calls, and the expected ending or error type.
struct Row {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    event: Value,
    api: Vec<Expected>,
    aws: Vec<Expected>,
    becomes: Result<Ending, &'static str>,
    sentence: &'static str,
}

/// Builds a test case without expected calls.
fn no_call(name: &'static str, event: Value, becomes: Result<Ending, &'static str>, sentence: &'static str) -> Row {
    Row { name, settings: &[], event, api: Vec::new(), aws: Vec::new(), becomes, sentence }
}

/// Builds a test case of a spot notice that drains a node with `pods`. `then` has the API calls after the pods were listed.
fn drained(name: &'static str, pods: &[Value], then: Vec<Expected>) -> Row {
    let api = [claim().says(200, node()), call("GET /api/v1/pods").says(200, list("Pod", pods))];
    let api = api.into_iter().chain(then).collect();
    Row { api, aws: vec![described("running", &OURS)], ..no_call(name, spot(), Ok(Drained), "") }
}

fn claim() -> Expected {
    call(format!("PATCH {NODE_PATH}"))
}

fn pods_watch(changes: &[Value]) -> Expected {
    call("GET /api/v1/pods").with("watch=true").streams(changes)
}

/// Builds a spot notice and sets `value` at the JSON pointer.
fn with(pointer: &str, value: Value) -> Value {
    let mut spot = spot();
    *spot.pointer_mut(pointer).unwrap() = value;
    spot
}

/// Builds a notice of scheduled maintenance that names the instances.
fn maintenance(instances: impl Iterator<Item = String>) -> Value {
    let mut maintenance = event("health-scheduled-maintenance", "unused");
    let entities: Vec<_> = instances.map(|id| json!({"entityValue": id, "status": "PENDING"})).collect();
    maintenance["detail"]["startTime"] = json!("Thu, 1 Jan 1970 00:05:00 GMT");
    maintenance["detail"]["affectedEntities"] = json!(entities);
    maintenance
}

fn events() -> Vec<Row> {
    let id = "/detail/instance-id";
    let mut timeless = spot();
    timeless.as_object_mut().unwrap().remove("time");
    let twice =
        r#"{"instance-id": "i-0123456789abcdef0", "instance-id": "no instance", "instance-action": "terminate"}"#;
    let unreadable = Err("UnreadableNotice");
    let ten_thousand = maintenance((0..10_000).map(|n| format!("i-{n:017x}")));
    vec![
        no_call("no time", timeless, unreadable, "at time: it is missing"),
        no_call("ahead", with("/time", json!("1970-01-02T00:00:00Z")), Ok(Ignored), "ahead of the function's clock"),
        no_call("two days old", with("/time", json!("1969-12-30T00:00:00Z")), Ok(Ignored), "AWS did not send it now"),
        no_call("detail as a string", with("/detail", json!("i-0123456789abcdef0")), unreadable, "at detail"),
        no_call("a megabyte", with(id, json!("x".repeat(1 << 20))), unreadable, "at detail.instance-id"),
        no_call("id of 100 characters", with(id, json!("i-".repeat(50))), unreadable, "at detail.instance-id"),
        no_call("unknown type", with("/detail-type", json!("EC2 Teleportation")), Ok(Ignored), "does not handle"),
        no_call("a key twice", with("/detail", serde_json::from_str(twice).unwrap()), unreadable, "at detail.instance"),
        no_call("no instance", maintenance(["none".to_owned()].into_iter()), Ok(Ignored), "it names no instance"),
        Row {
            aws: vec![invoked().repeated()],
            ..no_call("10,000 instances", ten_thousand, Ok(Continued), "1000; it names 9000 more")
        },
    ]
}

fn tags_and_names() -> Vec<Row> {
    let colon = ("kubernetes.io/cluster/arn:aws:eks", "owned");
    let odd_group = [OURS[0], ("aws:autoscaling:groupName", "a&amp;b&lt;c&gt;\u{2028}d")];
    let dns_name = |name: &str| {
        let (state, id) =
            ("<instanceState><name>running</name></instanceState>", format!("<instanceId>{NODE}</instanceId>"));
        let tag = "<tagSet><item><key>aws:eks:cluster-name</key><value>prod</value></item></tagSet>";
        let name = format!("<privateDnsName>{name}</privateDnsName>");
        vec![call("DescribeInstances").says(200, instances(&format!("<item>{id}{state}{name}{tag}</item>")))]
    };
    let unscheduled = ["TANCE_RETIREMENT_SCHEDULED_90353408594353983", "RETIREMENT_SCHEDULED_90353408594353983.again"];
    let found = ["found-stop-19691231T23", "found-stop-19700101T00", "found-stop-19700101T01"];
    let unscheduled = unscheduled.iter().chain(&found).map(|name| not_scheduled(&format!("{NODE}.{name}")));
    let on_node = |path: &str| call(format!("GET {path}")).says(200, node());
    vec![
        Row {
            aws: vec![described("running", &[colon])],
            ..no_call("cluster tag with a colon", spot(), Ok(Ignored), "EKS cluster")
        },
        Row {
            aws: vec![described("running", &[colon, ("kubernetes.io/cluster/prod", "owned")])],
            ..drained("cluster tag with a colon beside another", &[], vec![pods_watch(&[])])
        },
        Row { aws: dns_name("../namespaces/shop"), ..drained("DNS name with slashes", &[], vec![pods_watch(&[])]) },
        Row { aws: dns_name("Not a name"), ..drained("DNS name with spaces", &[], vec![pods_watch(&[])]) },
        Row { settings: &[("SPILLWAY_CLUSTERS", "")], ..drained("empty Clusters", &[], vec![pods_watch(&[])]) },
        Row {
            settings: &[("SPILLWAY_DRAIN_ON", "spot"), ("SPILLWAY_CORDON_ON", "maintenance")],
            aws: iter::once(described("running", &odd_group)).chain(unscheduled).collect(),
            api: vec![on_node(NODE_PATH), claim().with(r"a\\u0026b\\u003cc\\u003e\\u2028d").says(200, node())],
            ..no_call("group with & < > U+2028", maintenance([NODE.to_owned()].into_iter()), Ok(Done), "")
        },
    ]
}

fn objects() -> Vec<Row> {
    let (mut nameless, mut without_uid) = (node(), pod("b"));
    nameless["spec"].as_object_mut().unwrap().remove("providerID");
    without_uid["metadata"].as_object_mut().unwrap().remove("uid");
    let mut gone = pod("a");
    gone["metadata"]["resourceVersion"] = json!("9");
    let gone = || pods_watch(&[watched("DELETED", &gone)]);
    let eviction = || call("POST /api/v1/namespaces/shop/pods/a/eviction");
    let evicted = || eviction().says(201, json!({"kind": "Status", "status": "Success", "code": 201}));
    let cause = json!({"reason": "DisruptionBudget", "message": "The disruption budget web needs 1 healthy pods"});
    let blocked = json!({"kind": "Status", "code": 429, "details": {"causes": [cause]}});
    let budget = json!({"metadata": {"name": "web", "namespace": "shop", "generation": 1, "resourceVersion": "7"},
        "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Resembles", "values": ["web"]}]}},
        "status": {"disruptionsAllowed": 1, "observedGeneration": 1}});
    let budgets = || call("GET /apis/policy/v1/namespaces/shop/poddisruptionbudgets");
    let with_budget = vec![
        eviction().says(429, blocked),
        budgets().without("watch=true").says(200, list("PodDisruptionBudget", &[budget])).at_any_time(),
        budgets().with("watch=true").streams(&[]).perhaps(),
        // The pod must not be gone before its second eviction.
        call("GET /api/v1/pods").with("watch=true").says(429, "busy").perhaps(),
        evicted(),
        gone(),
    ];
    vec![
        Row {
            api: vec![
                claim().says(422, status(422, "Invalid", "nodes")),
                call(format!("GET {NODE_PATH}")).says(200, &nameless),
                call("GET /api/v1/nodes").says(200, list("Node", &[nameless])),
            ],
            aws: vec![described("running", &OURS)],
            ..no_call("node without provider id", spot(), Ok(Ignored), "no node")
        },
        drained("pod without UID", &[without_uid, pod("a")], vec![evicted(), gone()]),
        drained("budget with a broken selector", &[pod("a")], with_budget),
    ]
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_named_and_the_next_notice_drains() {
    for row in [events(), tags_and_names(), objects()].into_iter().flatten() {
        let Row { name, settings, event, api, aws, becomes, sentence } = row;
        let next = drained("next", &[], vec![pods_watch(&[])]);
        let published = (0..2).map(|_| put_event().perhaps());
        let context = TestContext::new(
            settings,
            api.into_iter().chain(next.api),
            aws.into_iter().chain(next.aws).chain(published),
        );
        let (became, text) = match handled(&context, event).await {
            Ok(receipt) => (Ok(receipt.ending.unwrap()), receipt.reason),
            Err(failure) => (Err(failure.error_type()), failure.text()),
        };
        assert_eq!(became, becomes, "{name}: {text}");
        assert!(text.contains(sentence) && text.len() < 1_000, "{name}: {text}");
        let next = handled(&context, spot()).await;
        assert!(next.is_ok_and(|receipt| receipt.ending == Some(Drained)), "after {name}");
    }
}

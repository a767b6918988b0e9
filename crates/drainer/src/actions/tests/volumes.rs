//! What is waited for when the last pod has gone: its volumes.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_core::invocation::Invocation;
use spillway_core::outcome::{DrainOutcome, Outcome};
use spillway_notice::{Deadline, Kind};
use spillway_settings::LifecycleResult;

use super::done;
use crate::actions::drain::drain;
use crate::failure::Failure;
use crate::receipt::record::{HookStatus, Record};
use crate::receipt::{AfterDrain, StepName};
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, list, node, pod, status, watched};
use crate::test_support::aws::{
    completed, group_described, heartbeat, hook_described, hook_described_for, scheduled, waits_no_more,
};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::log::logged_in_time;
use crate::test_support::script::{Expected, call};

const ATTACHMENTS: &str = "GET /apis/storage.k8s.io/v1/volumeattachments";
/// Names of attachments to the test's node: SHA-256 of `pv-x`, the driver and the node.
const NAMES: [(&str, &str); 4] = [
    ("pv-db", "csi-cbd7da26aa3acca8e1a2bcc2f4aa57f349d715b59fb7536da6de6b216dfbfbab"),
    ("pv-agent", "csi-10bf007988300f98f6c28fb7a1ff573a210186fa9c61b551d40d6b3f7c28c955"),
    ("pv-shared", "csi-6dd4593dba82d8fa74aab8cd961102ff9a1bf711c7a961cd1bfbb2c88b5f1304"),
    ("pv-deleted", "csi-1e4d2617b7528a43397285cbefbd1a63a91d612c405e0f3ac2d9363350895e46"),
];

/// A pod that uses the claim of its own name.
fn with_claim(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]);
    pod
}

/// The claim, a list of these pods, and the end of the one that leaves.
fn drained(pods: &[Value]) -> [Expected; 4] {
    let mut gone = with_claim("db-0");
    gone["metadata"]["resourceVersion"] = json!("9");
    let evicted = json!({"apiVersion": "v1", "kind": "Status", "status": "Success", "code": 201});
    [
        call(format!("PATCH {NODE_PATH}")).says(200, node()),
        call("GET /api/v1/pods").without("watch=true").says(200, list("Pod", pods)),
        call("POST /api/v1/namespaces/shop/pods/db-0/eviction").says(201, evicted),
        call("GET /api/v1/pods").with("watch=true").streams(&[watched("DELETED", &gone)]),
    ]
}

fn path(volume: &str) -> String {
    let (_, name) = NAMES.into_iter().find(|(of, _)| *of == volume).unwrap();
    format!("{ATTACHMENTS}/{name}")
}

/// The attachment is there.
fn is_attached(volume: &str) -> Expected {
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "csi"},
        "spec": {"attacher": "ebs.csi.aws.com", "nodeName": NODE, "source": {"persistentVolumeName": volume}},
        "status": {"attached": true},
    });
    call(path(volume)).says(200, attachment)
}

fn is_detached(volume: &str) -> Expected {
    call(path(volume)).says(404, status(404, "NotFound", "volumeattachments"))
}

/// The node's status names these volumes, and one that no CSI driver has attached.
fn has_attached(volumes: &[&str]) -> Expected {
    let mut node = node();
    let of_csi = volumes.iter().map(|volume| format!("kubernetes.io/csi/ebs.csi.aws.com^{volume}"));
    let names = of_csi.chain(["kubernetes.io/iscsi/portal".to_owned()]);
    node["status"]["volumesAttached"] = names.map(|name| json!({"name": name, "devicePath": ""})).collect();
    call(format!("GET {NODE_PATH}")).says(200, node)
}

/// The volume is read, and is of that claim.
fn volume(name: &str, claim: &str, mode: &str) -> Expected {
    let of = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"accessModes": [mode], "claimRef": {"namespace": "shop", "name": claim}},
    });
    call(format!("GET /api/v1/persistentvolumes/{name}")).says(200, of).at_any_time()
}

/// What was waited for in such a drain, and after how many seconds its hook was completed.
async fn waited(
    variables: &[(&str, &str)],
    pods: &[Value],
    api: impl IntoIterator<Item = Expected>,
) -> (AfterDrain, i64) {
    let context = TestContext::new(
        variables,
        drained(pods).into_iter().chain(api),
        [hook_described(), group_described(false), completed("CONTINUE")],
    );
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert!(matches!(done(outcome), Outcome::Drain(DrainOutcome::Drained { .. })));
    assert_eq!(record.hook, HookStatus::Completed(LifecycleResult::Continue));
    let completed = record.steps.iter().find(|(step, _)| *step == StepName::Completed).unwrap();
    (record.after_drain.expect("late pods were watched for"), completed.1.as_second())
}

fn after_drain(volumes_ms: Option<u64>, volumes_attached: Option<usize>) -> AfterDrain {
    AfterDrain { late_pods_ms: 5_000, volumes_ms, volumes_attached, ..AfterDrain::default() }
}

#[tokio::test(start_paused = true)]
async fn hook_waits_for_the_volume_of_the_pod_that_left() {
    let mut agent = with_claim("agent");
    agent["metadata"]["ownerReferences"][0]["kind"] = json!("DaemonSet");
    let api = [
        has_attached(&["pv-db", "pv-agent", "pv-shared", "pv-deleted"]),
        is_attached("pv-db"),
        is_attached("pv-agent").at_any_time(),
        is_attached("pv-shared").at_any_time(),
        is_attached("pv-deleted").at_any_time(),
        volume("pv-db", "db-0", "ReadWriteOnce"),
        volume("pv-agent", "agent", "ReadWriteOnce"),
        volume("pv-shared", "db-0", "ReadWriteMany"),
        call("GET /api/v1/persistentvolumes/pv-deleted")
            .says(404, status(404, "NotFound", "persistentvolumes"))
            .at_any_time(),
        is_attached("pv-db"),
        is_detached("pv-db"),
    ];
    assert_eq!(waited(&[], &[with_claim("db-0"), agent], api).await, (after_drain(Some(300), None), 5));
}

#[tokio::test(start_paused = true)]
async fn attached_volume_holds_the_hook_for_a_minute() {
    assert_eq!(waited(&[], &[with_claim("db-0")], stays_attached()).await, (after_drain(Some(60_000), Some(1)), 65));
}

/// The volume of the pod that left stays attached.
fn stays_attached() -> [Expected; 3] {
    [has_attached(&["pv-db"]), is_attached("pv-db").repeated(), volume("pv-db", "db-0", "ReadWriteOnce")]
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_attached_when_the_invocation_is_over_holds_the_hook_in_the_next_one() {
    for api in [stays_attached().into(), busy().into()] {
        let api: Vec<Expected> = api;
        let api = drained(&[with_claim("db-0")]).into_iter().chain(api);
        let context = TestContext::new(&[], api, [hook_described(), group_described(false)]);
        let (mut case, mut record) = (Case::held(Kind::Terminate), Record::default());
        let end = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(30);
        case.invocation = Invocation::until(end, "r-1", case.invocation.clock);
        let attempt = case.attempt(&context).await;
        let failure = drain(&context, &case.target(&attempt), &mut record).await.unwrap_err();
        assert!(matches!(failure, Failure::StillHeld { .. }), "{failure:?}");
        assert_eq!((record.pods.len(), record.hook), (1, HookStatus::Left));
    }
}

#[tokio::test(start_paused = true)]
async fn lost_answer_is_asked_for_again() {
    let api = [
        has_attached(&["pv-db"]),
        is_attached("pv-db"),
        volume("pv-db", "db-0", "ReadWriteOnce"),
        call(path("pv-db")).lost(),
        is_detached("pv-db"),
    ];
    let (after, completed) = waited(&[], &[with_claim("db-0")], api).await;
    assert_eq!(after.volumes_attached, None);
    assert_eq!(completed, 5);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_holds_the_hook_no_longer_than_is_set() {
    assert_eq!(waited(&[], &[with_claim("db-0")], busy()).await, (after_drain(Some(60_000), None), 65));
}

fn busy() -> [Expected; 2] {
    [has_attached(&["pv-db"]).repeated(), call(path("pv-db")).says(503, "busy").repeated()]
}

#[tokio::test(start_paused = true)]
async fn without_the_right_nothing_is_waited_for() {
    let may_not = || call(path("pv-db")).says(403, status(403, "Forbidden", "volumeattachments"));
    let api = [has_attached(&["pv-db"]), may_not()];
    assert_eq!(waited(&[], &[with_claim("db-0")], api).await, (after_drain(None, None), 5));
    let db = volume("pv-db", "db-0", "ReadWriteOnce");
    let api = [has_attached(&["pv-db"]), is_attached("pv-db"), db, may_not()];
    assert_eq!(waited(&[], &[with_claim("db-0")], api).await, (after_drain(None, None), 5));
}

#[test]
fn what_is_waited_for_in_vain_or_not_at_all_is_told() {
    let refused =
        |code| vec![has_attached(&["pv-db"]), call(path("pv-db")).says(code, status(code, "why", "volumeattachments"))];
    for (api, told) in [
        (
            refused(403),
            "cannot see whether the volumes of node NODE are detached (apply deploy/rbac.yaml); not waiting for them",
        ),
        (refused(400), "cannot see whether the volumes of node NODE are detached; not waiting for them"),
        (stays_attached().into(), "waited long enough: still attached to node NODE are pv-db"),
        (
            refused(503).into_iter().chain([has_attached(&[])]).collect(),
            "cannot look at VolumeAttachments; trying again",
        ),
    ] {
        let lines = logged_in_time(async { _ = waited(&[], &[with_claim("db-0")], api).await });
        let told = format!("WARN: {}", told.replace("NODE", NODE));
        assert!(lines.contains(&told), "{told}: {lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_to_be_waited_for_nothing_is_asked() {
    assert_eq!(waited(&[], &[pod("db-0")], [has_attached(&[])]).await, (after_drain(None, None), 5));
}

/// The scripted API server fails a request for attachments.
#[tokio::test(start_paused = true)]
async fn drain_without_a_hook_reads_no_volume_attachments() {
    let context = TestContext::new(&[], drained(&[with_claim("db-0")]), []);
    let (case, mut record) = (Case::spot(), Record::default());
    let attempt = case.attempt(&context).await;
    drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert_eq!(record.after_drain, Some(after_drain(None, None)));
}

#[tokio::test(start_paused = true)]
async fn what_a_pod_uses_that_stays_is_not_waited_for() {
    let mut agent = with_claim("agent");
    agent["metadata"]["ownerReferences"][0]["kind"] = json!("DaemonSet");
    agent["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] = json!("db-0");
    let api = [has_attached(&["pv-db"]), is_attached("pv-db"), volume("pv-db", "db-0", "ReadWriteOnce")];
    assert_eq!(waited(&[], &[with_claim("db-0"), agent], api).await, (after_drain(None, None), 5));
}

/// cluster-autoscaler evicts the pods, waits for them but not for their volumes, and then has the instance terminated.
#[tokio::test(start_paused = true)]
async fn a_hook_waits_for_the_volume_of_a_pod_that_left_before_the_drain() {
    let api = [
        has_attached(&["pv-db"]),
        is_attached("pv-db"),
        volume("pv-db", "db-7", "ReadWriteOnce"),
        is_detached("pv-db"),
    ];
    assert_eq!(waited(&[], &[pod("db-0")], api).await, (after_drain(Some(100), None), 5));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_over_ends_the_waiting() {
    let over = call("RecordLifecycleActionHeartbeat").says(400, waits_no_more());
    let aws = [
        hook_described_for(60),
        group_described(false),
        heartbeat(),
        over,
        call("CompleteLifecycleAction").says(400, waits_no_more()),
    ];
    let api = drained(&[with_claim("db-0")]).into_iter().chain(stays_attached());
    let context = TestContext::new(&[], api, aws);
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let attempt = case.attempt(&context).await;
    let target = case.target(&attempt);
    let outcome = attempt.hold_action_during(Box::pin(drain(&context, &target, &mut record))).await.unwrap();
    assert!(matches!(done(outcome), Outcome::Drain(DrainOutcome::Drained { .. })));
    assert_eq!(record.hook, HookStatus::AlreadyOver(Some(LifecycleResult::Continue)));
    let completed = record.steps.iter().find(|(step, _)| *step == StepName::Completed).unwrap();
    assert!((6..60).contains(&completed.1.as_second()), "{completed:?}");
}

#[tokio::test(start_paused = true)]
async fn for_an_empty_node_that_is_given_back_no_volume_is_waited_for() {
    let nodes = || call("GET /api/v1/nodes").with("metadata.name");
    let (ours, given_back) = (claimed(Kind::Rebalance.as_str(), "e-1", "r-1"), node());
    let api = drained(&[with_claim("db-0")]).into_iter().chain([
        nodes().without("watch=true").says(200, list("Node", &[ours])).at_any_time(),
        nodes().with("watch=true").lost().at_any_time(),
        nodes().without("watch=true").says(200, list("Node", &[given_back])).at_any_time(),
        nodes().with("watch=true").perhaps(),
    ]);
    let context = TestContext::new(&[], api, [scheduled(&format!("{NODE}.rebalance-recommendation.0"))]);
    let (case, mut record) = (Case::of(Kind::Rebalance, Deadline::Open), Record::default());
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert!(matches!(done(outcome), Outcome::Drain(DrainOutcome::Drained { .. })));
    assert!(record.after_drain.is_some_and(|waited| waited.late_pods_ms < 5_000), "{:?}", record.after_drain);
}

//! Wait for volumes after the last pod.

use super::*;

const ATTACHMENTS: &str = "GET /apis/storage.k8s.io/v1/volumeattachments";
/// Names of attachments to the test's node: SHA-256 of the volume, the driver and the node.
const NAMES: [(&str, &str); 3] = [
    ("pv-db", "csi-cbd7da26aa3acca8e1a2bcc2f4aa57f349d715b59fb7536da6de6b216dfbfbab"),
    ("pv-shared", "csi-6dd4593dba82d8fa74aab8cd961102ff9a1bf711c7a961cd1bfbb2c88b5f1304"),
    ("pv-deleted", "csi-1e4d2617b7528a43397285cbefbd1a63a91d612c405e0f3ac2d9363350895e46"),
];

/// The claim of a node whose only pod leaves, with the volume claim `db-0`.
fn drains_db() -> [Expected; 4] {
    let mut db = pod("db-0");
    db["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "db-0"}}]);
    let mut gone = db.clone();
    gone["metadata"]["resourceVersion"] = json!("9");
    [claim_node(), list_pods(&[db]), eviction("db-0"), watch_pods(&[watched("DELETED", &gone)])]
}

fn attachment(volume: &str) -> Expected {
    let (_, name) = NAMES.into_iter().find(|(of, _)| *of == volume).unwrap();
    call(format!("{ATTACHMENTS}/{name}"))
}

fn is_attached(volume: &str) -> Expected {
    attachment(volume).says(
        200,
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "csi"},
            "spec": {"attacher": "ebs.csi.aws.com", "nodeName": NODE, "source": {"persistentVolumeName": volume}},
            "status": {"attached": true},
        }),
    )
}

fn is_detached() -> Expected {
    attachment("pv-db").says(404, status(404, "NotFound", "volumeattachments"))
}

/// The node's status names these volumes, and a volume of no CSI driver.
fn has_attached(volumes: &[&str]) -> Expected {
    let mut node = node();
    let of_csi = volumes.iter().map(|volume| format!("kubernetes.io/csi/ebs.csi.aws.com^{volume}"));
    let names = of_csi.chain(["kubernetes.io/iscsi/portal".to_owned()]);
    node["status"]["volumesAttached"] = names.map(|name| json!({"name": name, "devicePath": ""})).collect();
    read_node(node)
}

/// The volume is read, and belongs to the claim of `db-0`.
fn volume(name: &str, mode: &str) -> Expected {
    let of = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"accessModes": [mode], "claimRef": {"namespace": "shop", "name": "db-0"}},
    });
    call(format!("GET /api/v1/persistentvolumes/{name}")).says(200, of).at_any_time()
}

fn db() -> Expected {
    volume("pv-db", "ReadWriteOnce")
}

fn stays_attached() -> Vec<Expected> {
    vec![has_attached(&["pv-db"]), is_attached("pv-db").repeated(), db()]
}

fn busy() -> Vec<Expected> {
    vec![has_attached(&["pv-db"]).repeated(), attachment("pv-db").says(503, "busy").repeated()]
}

/// Waits of a drain, and the second in which its hook was completed.
async fn waited(api: impl IntoIterator<Item = Expected>) -> (AfterDrain, i64) {
    let aws = [hook_described(), group_described(false), completed("CONTINUE")];
    let context = TestContext::new(&[], drains_db().into_iter().chain(api), aws);
    let (outcome, record) = drain_case(&context, &Case::held(Kind::Terminate)).await;
    assert_eq!((outcome.unwrap(), record.hook), (drained(1), HookStatus::Completed(Continue)));
    (record.after_drain.expect("late pods were watched for"), second(&record, StepName::Completed))
}

fn after_drain(volumes_ms: Option<u64>, volumes_attached: Option<usize>) -> AfterDrain {
    AfterDrain { late_pods_ms: 5_000, volumes_ms, volumes_attached, ..AfterDrain::default() }
}

#[tokio::test(start_paused = true)]
async fn hook_waits_for_the_volume_of_the_pod_that_left() {
    let deleted = call("GET /api/v1/persistentvolumes/pv-deleted");
    let api = [
        has_attached(&["pv-db", "pv-shared", "pv-deleted"]),
        is_attached("pv-db"),
        is_attached("pv-shared").at_any_time(),
        is_attached("pv-deleted").at_any_time(),
        db(),
        volume("pv-shared", "ReadWriteMany"),
        deleted.says(404, status(404, "NotFound", "persistentvolumes")).at_any_time(),
        is_attached("pv-db"),
        is_detached(),
    ];
    assert_eq!(waited(api).await, (after_drain(Some(300), None), 5));
}

#[tokio::test(start_paused = true)]
async fn hook_waits_a_minute_at_most_and_not_without_a_right() {
    let refused = |code| attachment("pv-db").says(code, status(code, "why", "volumeattachments"));
    let first = |code| vec![has_attached(&["pv-db"]), refused(code)];
    let later = vec![has_attached(&["pv-db"]), is_attached("pv-db"), db(), refused(403)];
    let at_once = || after_drain(None, None);
    for (api, expected) in [
        (stays_attached(), after_drain(Some(60_000), Some(1))),
        (busy(), after_drain(Some(60_000), None)),
        (first(403), at_once()),
        (first(400), at_once()),
        (later, at_once()),
        (vec![has_attached(&[])], at_once()),
    ] {
        let seconds = 5 + i64::try_from(expected.volumes_ms.unwrap_or(0) / 1000).unwrap();
        assert_eq!(waited(api).await, (expected, seconds));
    }
}

#[tokio::test(start_paused = true)]
async fn volume_left_at_the_end_of_the_invocation_keeps_the_hook() {
    for api in [stays_attached(), busy()] {
        let aws = [hook_described(), group_described(false)];
        let (context, mut case) =
            (TestContext::new(&[], drains_db().into_iter().chain(api), aws), Case::held(Kind::Terminate));
        let end = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(30);
        case.invocation = Invocation::until(end, "r-1", case.invocation.clock);
        let (outcome, record) = drain_case(&context, &case).await;
        let failure = outcome.unwrap_err();
        assert!(matches!(failure, Failure::StillHeld { .. }), "{failure:?}");
        assert_eq!((record.pods.len(), record.hook), (1, HookStatus::Left));
    }
}

/// The scripted API server fails a request for attachments.
#[tokio::test(start_paused = true)]
async fn drain_without_a_hook_reads_no_volume_attachments() {
    let (outcome, record) = drain_case(&TestContext::new(&[], drains_db(), []), &Case::spot()).await;
    assert_eq!((outcome.unwrap(), record.after_drain), (drained(1), Some(after_drain(None, None))));
}

//! What a node says of its drain, where the settings have it say so.

use serde_json::json;
use spillway_notice::{Deadline, Kind, Maintenance};
use spillway_receipt::Earlier;

use super::drained;
use crate::actions::drain::drain;
use crate::actions::postpone::postpone;
use crate::actions::uncordon::uncordon;

use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE_PATH, claimed, list, node, pod, status, watched};
use crate::test_support::at;
use crate::test_support::aws::{not_scheduled, scheduled};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

const SAYS: [(&str, &str); 1] = [("SPILLWAY_NODE_CONDITIONS", "true")];

fn status_patch() -> Expected {
    call(format!("PATCH {NODE_PATH}/status")).with("fieldManager=spillway")
}

/// The node's condition is set, and says that.
fn said(condition: &str, status: &str, message: &str) -> Expected {
    let condition = format!(r#""status":"{status}","type":"{condition}""#);
    status_patch().with(condition).with(message).says(200, node()).at_any_time()
}

/// The drain of a node with one pod, which leaves.
fn drains() -> [Expected; 4] {
    let mut gone = pod("a");
    gone["metadata"]["resourceVersion"] = json!("9");
    let evicted = json!({"apiVersion": "v1", "kind": "Status", "status": "Success", "code": 201});
    [
        call(format!("PATCH {NODE_PATH}")).says(200, node()),
        call("GET /api/v1/pods").without("watch=true").says(200, list("Pod", &[pod("a")])),
        call("POST /api/v1/namespaces/shop/pods/a/eviction").says(201, evicted),
        call("GET /api/v1/pods").with("watch=true").streams(&[watched("DELETED", &gone)]),
    ]
}

/// The drain of a node with one pod, by the first invocation or a later one, in which that is told.
async fn told(is_continued: bool, told: impl IntoIterator<Item = Expected>) {
    let (context, mut case) = (TestContext::new(&SAYS, drains().into_iter().chain(told), []), Case::spot());
    if is_continued {
        let now = case.invocation.clock.now();
        let before = Earlier { request_id: "r-0".to_owned(), from: now, to: now, node: None, pods: [].into() };
        case.history.earlier.push(before);
    }
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    assert_eq!(outcome, drained(1));
}

#[tokio::test(start_paused = true)]
async fn a_node_says_that_it_is_drained_since_when_and_at_last_that_it_has_been() {
    let begun = || said("DrainInProgress", "True", "0 of 1");
    let over = || said("Drained", "True", "1 of 1").with(r#""status":"False""#);
    told(false, [begun().with("lastTransitionTime"), over()]).await;
    told(true, [begun().without("lastTransitionTime"), over()]).await;
    told(false, [status_patch().says(403, status(403, "Forbidden", "nodes")).at_any_time()]).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_says_when_the_drain_begins_that_is_planned() {
    let looked_at = || call(format!("GET {NODE_PATH}")).says(200, node());
    let planned = said("MaintenancePlanned", "True", "1970-01-02T00:00:00Z");
    let name = "i-0123456789abcdef0.M-1";
    let schedules = [scheduled(name), not_scheduled(&format!("{name}.again"))];
    let (context, mut case) = (TestContext::new(&SAYS, [looked_at(), looked_at(), planned], schedules), Case::spot());
    case.notice.kind = Kind::Maintenance;
    case.notice.maintenance = Some(Maintenance { id: "M-1".to_owned(), reboots: true, starts: None });
    let attempt = case.attempt(&context).await;
    let begins = at("1970-01-02T00:00:00Z");
    postpone(&context, &case.target(&attempt), begins, None, &mut Record::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_given_back_says_nothing_of_its_drain_any_more() {
    let mut drained = claimed(Kind::Stopping.as_str(), "e-0", "r-0");
    let condition = json!({"type": "Drained", "status": "True", "reason": "DrainedBySpillway"});
    drained["status"]["conditions"].as_array_mut().unwrap().push(condition);
    let api = [
        call(format!("GET {NODE_PATH}")).says(200, drained),
        call(format!("PATCH {NODE_PATH}")).says(200, node()),
        status_patch().with(r#"{"$patch":"delete","type":"Drained"}"#).says(200, node()),
    ];
    let (context, case) = (TestContext::new(&SAYS, api, []), Case::of(Kind::Running, Deadline::Open));
    let attempt = case.attempt(&context).await;
    uncordon(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
}

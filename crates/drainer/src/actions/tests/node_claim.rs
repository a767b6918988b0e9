use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_core::instance::ManagedBy;
use spillway_core::node::node_claim::HandedOver;
use spillway_core::outcome::Outcome;
use spillway_notice::{Deadline, Kind};

use super::done;
use crate::actions::Next;
use crate::actions::node_claim::hand_over;
use crate::failure::Failure;
use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE, NODE_PATH, node, status};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};
use crate::test_support::{at, instance};

const CLAIM_PATH: &str = "/apis/karpenter.sh/v1/nodeclaims/default-1";

fn owned() -> Expected {
    let mut node = node();
    node["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "default-1", "uid": "u-1"}]);
    call(format!("GET {NODE_PATH}")).says(200, node)
}

fn node_claim() -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "default-1", "uid": "u-1", "resourceVersion": "4"},
        "status": {"providerID": instance().provider_id()}})
}

async fn handed_over(api: impl IntoIterator<Item = Expected>) -> Result<Next, Failure> {
    with_warnings(api).await.0
}

async fn with_warnings(api: impl IntoIterator<Item = Expected>) -> (Result<Next, Failure>, Vec<String>) {
    let (context, case) = (TestContext::new(&[], api, []), Case::spot());
    let (attempt, mut record) = (case.attempt(&context).await, Record::default());
    let next = hand_over(&context, &case.target(&attempt), &mut record).await;
    (next, record.warnings)
}

#[tokio::test(start_paused = true)]
async fn a_node_claim_gets_the_deadline_and_is_deleted() {
    let outcome = handed_over([
        owned(),
        call(format!("GET {CLAIM_PATH}")).says(200, node_claim()),
        call(format!("PATCH {CLAIM_PATH}")).with("1970-01-01T00:02:00Z").says(200, node_claim()),
        call(format!("DELETE {CLAIM_PATH}")).with(r#""uid":"u-1""#).says(200, node_claim()),
    ]);
    let until = Some(at("1970-01-01T00:02:00Z"));
    let handed = HandedOver::ToKarpenter { node: NODE.to_owned(), claim: "default-1".to_owned(), until };
    assert_eq!(outcome.await.unwrap(), Outcome::HandedOver(handed).into());
}

#[tokio::test(start_paused = true)]
async fn a_node_claim_that_changed_since_it_was_looked_at_is_looked_at_again() {
    let outcome = handed_over([
        owned(),
        call(format!("GET {CLAIM_PATH}")).says(200, node_claim()),
        call(format!("PATCH {CLAIM_PATH}")).says(409, status(409, "Conflict", "nodeclaims")),
        call(format!("GET {CLAIM_PATH}")).says(200, node_claim()),
        call(format!("PATCH {CLAIM_PATH}")).says(200, node_claim()),
        call(format!("DELETE {CLAIM_PATH}")).says(200, node_claim()),
    ]);
    assert!(matches!(done(outcome.await.unwrap()), Outcome::HandedOver(HandedOver::ToKarpenter { .. })));
}

#[tokio::test(start_paused = true)]
async fn of_a_node_claim_that_has_changed_three_times_the_node_is_looked_at_again() {
    let look = || call(format!("GET {CLAIM_PATH}")).says(200, node_claim());
    let patch = || call(format!("PATCH {CLAIM_PATH}"));
    let changed = || [look(), patch().says(409, status(409, "Conflict", "nodeclaims"))];
    let deleted = call(format!("DELETE {CLAIM_PATH}")).says(200, node_claim());
    let again = [owned(), look(), patch().says(200, node_claim()), deleted];
    let outcome = handed_over([owned()].into_iter().chain((0..3).flat_map(|_| changed())).chain(again));
    assert!(matches!(done(outcome.await.unwrap()), Outcome::HandedOver(HandedOver::ToKarpenter { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_past_is_not_written() {
    let api = [
        owned(),
        call(format!("GET {CLAIM_PATH}")).says(200, node_claim()),
        call(format!("DELETE {CLAIM_PATH}")).says(200, node_claim()),
    ];
    let (context, case) = (TestContext::new(&[], api, []), Case::of(Kind::Spot, Deadline::Hard(Timestamp::UNIX_EPOCH)));
    let attempt = case.attempt(&context).await;
    let next = hand_over(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    let handed = HandedOver::ToKarpenter { node: NODE.to_owned(), claim: "default-1".to_owned(), until: None };
    assert_eq!(next, Outcome::HandedOver(handed).into());
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_close_is_written_as_ten_seconds_from_now() {
    let api = [
        owned(),
        call(format!("GET {CLAIM_PATH}")).says(200, node_claim()),
        call(format!("PATCH {CLAIM_PATH}")).with("1970-01-01T00:00:10Z").says(200, node_claim()),
        call(format!("DELETE {CLAIM_PATH}")).says(200, node_claim()),
    ];
    let close = Deadline::Hard(at("1970-01-01T00:00:03Z"));
    let (context, case) = (TestContext::new(&[], api, []), Case::of(Kind::Spot, close));
    let attempt = case.attempt(&context).await;
    hand_over(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_claim_that_has_gone_was_karpenters_to_delete() {
    let gone = call(format!("GET {CLAIM_PATH}")).says(404, status(404, "NotFound", "nodeclaims"));
    let handed = HandedOver::AlreadyLeaving { node: NODE.to_owned(), claim: "default-1".to_owned() };
    assert_eq!(handed_over([owned(), gone]).await.unwrap(), Outcome::HandedOver(handed).into());
}

#[tokio::test(start_paused = true)]
async fn a_node_claim_that_another_has_replaced_under_its_name_is_not_deleted() {
    let another = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409, "reason": "Conflict",
        "message": "Operation cannot be fulfilled on nodeclaims.karpenter.sh \"default-1\": the UID in the precondition (u-1) does \
            not match the UID in record (u-2). The object might have been deleted and then recreated"});
    let outcome = handed_over([
        owned(),
        call(format!("GET {CLAIM_PATH}")).says(200, node_claim()),
        call(format!("PATCH {CLAIM_PATH}")).says(200, node_claim()),
        call(format!("DELETE {CLAIM_PATH}")).with(r#""uid":"u-1""#).says(409, another),
    ]);
    let handed = HandedOver::AlreadyLeaving { node: NODE.to_owned(), claim: "default-1".to_owned() };
    assert_eq!(outcome.await.unwrap(), Outcome::HandedOver(handed).into());
}

#[tokio::test(start_paused = true)]
async fn a_node_with_karpenters_label_and_without_a_node_claim_is_left_alone() {
    let handed = HandedOver::NotKarpenters { node: NODE.to_owned() };
    let mut node = node();
    node["metadata"]["labels"]["karpenter.sh/nodepool"] = json!("default");
    let looked_at = call(format!("GET {NODE_PATH}")).says(200, node);
    let (next, warnings) = with_warnings([looked_at]).await;
    assert_eq!((next.unwrap(), warnings), (Outcome::HandedOver(handed).into(), Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_node_without_karpenters_label_and_without_a_node_claim_is_drained_with_a_warning() {
    let looked_at = call(format!("GET {NODE_PATH}")).says(200, node());
    let (next, warnings) = with_warnings([looked_at]).await;
    assert_eq!(next.unwrap(), Next::DecideAgain(ManagedBy::SelfManaged));
    assert_eq!(
        warnings,
        ["the tags of instance i-0123456789abcdef0 say that Karpenter manages it, and its node has neither the label \
          karpenter.sh/nodepool nor a NodeClaim: the tags are not believed"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_to_change_or_to_delete_it_is_a_failure() {
    let found = || [owned(), call(format!("GET {CLAIM_PATH}")).says(200, node_claim())].into_iter();
    let changed = call(format!("PATCH {CLAIM_PATH}")).says(200, node_claim());
    let denied = |method| call(format!("{method} {CLAIM_PATH}")).says(403, status(403, "Forbidden", "nodeclaims"));
    for changes in [vec![denied("PATCH")], vec![changed, denied("DELETE")]] {
        assert_eq!(handed_over(found().chain(changes)).await.unwrap_err().error_type(), "KubernetesDenied");
    }
}

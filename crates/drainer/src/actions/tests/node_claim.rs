use spillway_core::instance::ManagedBy;
use spillway_core::node::node_claim::HandedOver;

use super::*;
use crate::actions::node_claim::hand_over;

const CLAIM_PATH: &str = "/apis/karpenter.sh/v1/nodeclaims/default-1";

fn owned() -> Expected {
    let mut node = node();
    node["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "default-1", "uid": "u-1"}]);
    read_node(node)
}

/// A request for the node's NodeClaim, which is answered with it.
fn of_claim(method: &str) -> Expected {
    let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "default-1", "uid": "u-1", "resourceVersion": "4"},
        "status": {"providerID": instance().provider_id()}});
    call(format!("{method} {CLAIM_PATH}")).says(200, claim)
}

fn deleted() -> Expected {
    of_claim("DELETE").with(r#""uid":"u-1""#)
}

async fn handed_over(case: Case, api: impl IntoIterator<Item = Expected>) -> (Result<Next, Failure>, Vec<String>) {
    let context = TestContext::new(&[], api, []);
    let (attempt, mut record) = (case.attempt(&context).await, Record::default());
    let next = hand_over(&context, &case.target(&attempt), &mut record).await;
    (next, record.warnings)
}

fn outcome(handed: HandedOver) -> Next {
    Outcome::HandedOver(handed).into()
}

fn to_karpenter(until: Option<&str>) -> Next {
    outcome(HandedOver::ToKarpenter { node: NODE.to_owned(), claim: "default-1".to_owned(), until: until.map(at) })
}

#[tokio::test(start_paused = true)]
async fn node_claim_gets_the_deadline_and_is_deleted() {
    for (deadline, until) in [
        ("1970-01-01T00:02:00Z", Some("1970-01-01T00:02:00Z")),
        ("1970-01-01T00:00:03Z", Some("1970-01-01T00:00:10Z")),
        ("1970-01-01T00:00:00Z", None),
    ] {
        let written = until.map(|until| of_claim("PATCH").with(until).with(r#""resourceVersion":"4""#));
        let api = [owned(), of_claim("GET")].into_iter().chain(written).chain([deleted()]);
        let (next, _) = handed_over(Case::of(Kind::Spot, Deadline::Hard(at(deadline))), api).await;
        assert_eq!(next.unwrap(), to_karpenter(until), "{deadline}");
    }
}

/// The fourth time the node is read again.
#[tokio::test(start_paused = true)]
async fn changed_node_claim_is_read_again() {
    let changed = || [of_claim("GET"), of_claim("PATCH").says(409, status(409, "Conflict", "nodeclaims"))];
    let again = [owned(), of_claim("GET"), of_claim("PATCH"), deleted()];
    let api = [owned()].into_iter().chain((0..3).flat_map(|_| changed())).chain(again);
    let (next, _) = handed_over(Case::spot(), api).await;
    assert_eq!(next.unwrap(), to_karpenter(Some("1970-01-01T00:02:00Z")));
}

#[tokio::test(start_paused = true)]
async fn gone_or_replaced_node_claim_was_karpenters_to_delete() {
    let gone = of_claim("GET").says(404, status(404, "NotFound", "nodeclaims"));
    let replaced = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409, "reason": "Conflict",
        "message": "Operation cannot be fulfilled on nodeclaims.karpenter.sh \"default-1\": the UID in the precondition (u-1) does \
            not match the UID in record (u-2). The object might have been deleted and then recreated"});
    for api in [vec![gone], vec![of_claim("GET"), of_claim("PATCH"), deleted().says(409, replaced)]] {
        let (next, _) = handed_over(Case::spot(), [owned()].into_iter().chain(api)).await;
        let (node, claim) = (NODE.to_owned(), "default-1".to_owned());
        assert_eq!(next.unwrap(), outcome(HandedOver::AlreadyLeaving { node, claim }));
    }
}

#[tokio::test(start_paused = true)]
async fn labelled_node_without_a_node_claim_is_left_alone() {
    let mut labelled = node();
    labelled["metadata"]["labels"]["karpenter.sh/nodepool"] = json!("default");
    let (next, warnings) = handed_over(Case::spot(), [read_node(labelled)]).await;
    let left = outcome(HandedOver::NotKarpenters { node: NODE.to_owned() });
    assert_eq!((next.unwrap(), warnings), (left, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn node_without_label_and_node_claim_is_drained_with_a_warning() {
    let (next, warnings) = handed_over(Case::spot(), [read_node(node())]).await;
    assert_eq!(next.unwrap(), Next::DecideAgain(ManagedBy::SelfManaged));
    assert_eq!(
        warnings,
        ["the tags of instance i-0123456789abcdef0 name Karpenter, but its node has neither the label \
          karpenter.sh/nodepool nor a NodeClaim; ignoring the tags"]
    );
}

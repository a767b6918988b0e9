//! The node of an instance: found, checked and claimed.
//!
//! The claim is one JSON patch that tests the provider id, tests that nobody has cordoned the
//! node or claimed it, then cordons it and writes our annotation. It cannot hit the wrong
//! node, and of two notices at once exactly one wins. The private DNS name is only a first
//! guess at the node's name; when it is right, the patch is all that is needed.

use json_patch::{AddOperation, Patch, PatchOperation, TestOperation, jsonptr::PointerBuf};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, ListParams, PatchParams};
use kube::core::{NotUsed, Object};
use kube::{Api, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::instance::Instance;
use crate::kubernetes::{ApiError, call, is_missing};

/// The annotation that says who claimed the node, for what and until when.
pub(crate) const ANNOTATION: &str = "spillway/claim";
/// Names us in `managedFields`.
const FIELD_MANAGER: &str = "spillway";
/// How many nodes the search looks at in one request. A node is 17 KB and more, most of it the names of
/// its images, and an answer is in memory twice: 4 MB, whatever the size of the cluster.
const PAGE: u32 = 100;
/// How often a claim is tried anew when the node changes between looking and patching.
const CLAIM_ATTEMPTS: u32 = 3;

/// What the annotation holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The id of the event that made the claim.
    pub(crate) event: String,
    /// The invocation that holds it: Lambda's request id, the same for all attempts at a delivery.
    pub(crate) request: String,
    /// The kind of notice.
    pub(crate) notice: String,
    /// The deadline, RFC 3339; absent while a hook holds the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
    /// Whether it was we who cordoned the node: only then may we uncordon it.
    pub(crate) cordoned: bool,
}

/// Who claims, and from whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimant {
    /// What is to be written.
    pub(crate) mark: Mark,
    /// The invocation that handed the drain on to this one: its claim becomes ours.
    pub(crate) handed_on_by: Option<String>,
}

/// How the claim went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum How {
    /// The node is ours: we cordoned it.
    First,
    /// Somebody had cordoned it before; we drain it, and leave the cordon to them.
    CordonedByOthers,
    /// This delivery of the event had claimed it: an earlier attempt or an earlier invocation.
    Again,
    /// Another notice has claimed it, or another delivery of the same, and tells people about it.
    Joined {
        /// That notice's kind.
        notice: String,
        /// That event's id.
        event: String,
    },
}

/// A node that may be drained.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    /// The node's name.
    pub(crate) node: String,
    /// How the claim went.
    pub(crate) how: How,
}

impl Claim {
    /// Whether another drain of the node is at work.
    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.how, How::Joined { .. })
    }
}

/// Finds the instance's node and claims it. `None`: the cluster has no such node.
pub(crate) async fn claim(
    nodes: &Api<Node>,
    instance: &Instance,
    claimant: &Claimant,
) -> Result<Option<Claim>, ApiError> {
    for name in guesses(instance) {
        if let Some(how) = claim_by_name(nodes, &name, instance, claimant).await? {
            return Ok(Some(Claim { node: name, how }));
        }
    }
    let Some(name) = find_by_provider_id(nodes, &instance.provider_id()).await? else { return Ok(None) };
    let how = claim_by_name(nodes, &name, instance, claimant).await?;
    Ok(how.map(|how| Claim { node: name, how }))
}

/// What the instance's node is most likely called.
pub(crate) fn likely_name(instance: &Instance) -> String {
    guesses(instance).swap_remove(0)
}

/// The names that EKS gives nodes, most common first: the private DNS name; the bare instance
/// id; the instance id with the DNS name's domain (resource-based naming).
fn guesses(instance: &Instance) -> Vec<String> {
    let id = instance.id.as_str();
    let dns_name = instance.private_dns_name.as_deref();
    let domain = dns_name.and_then(|name| name.split_once('.')).map(|(_, domain)| domain);
    let mut names: Vec<String> = dns_name.map(str::to_owned).into_iter().collect();
    names.push(id.to_owned());
    names.extend(domain.map(|domain| format!("{id}.{domain}")).filter(|name| Some(name.as_str()) != dns_name));
    names
}

/// Claims the node by that name, if it is the instance's.
async fn claim_by_name(
    nodes: &Api<Node>,
    name: &str,
    instance: &Instance,
    claimant: &Claimant,
) -> Result<Option<How>, ApiError> {
    let mut free = Free { seen: Seen::untouched(), as_what: How::First, cordoned_by_us: true };
    let mut refusal = None;
    for _ in 0..CLAIM_ATTEMPTS {
        match patch(nodes, name, &claim_patch(&instance.provider_id(), &free, &claimant.mark)).await {
            Ok(()) => return Ok(Some(free.as_what)),
            Err(ApiError::Refused(status)) if is_missing(&status, "nodes") => return Ok(None),
            Err(ApiError::Refused(status)) if status.code == 422 => refusal = Some(status),
            Err(error) => return Err(error),
        }
        let Some(node) = call(nodes.get_opt(name)).await? else { return Ok(None) };
        if node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()) != Some(&instance.provider_id()) {
            return Ok(None);
        }
        match standing(Seen::of(&node), claimant) {
            Standing::Taken(how) => return Ok(Some(how)),
            Standing::Free(as_it_stands) => free = as_it_stands,
        }
    }
    Err(ApiError::Contended(refusal.expect("there is at least one attempt, and each that goes on was refused")))
}

/// What matters about a node as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    cordoned: bool,
    annotation: Option<String>,
    /// A kubelet's node always has annotations; one that somebody made by hand may have none.
    annotated: bool,
}

impl Seen {
    /// The common case, which needs no look.
    fn untouched() -> Self {
        Self { cordoned: false, annotation: None, annotated: true }
    }

    fn of(node: &Node) -> Self {
        Self {
            cordoned: node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false),
            annotation: node.annotations().get(ANNOTATION).cloned(),
            annotated: node.metadata.annotations.is_some(),
        }
    }
}

/// What a claim finds.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// Claimed and cordoned already.
    Taken(How),
    /// To be claimed as it stands.
    Free(Free),
}

/// A node that may be claimed.
#[derive(Debug, PartialEq, Eq)]
struct Free {
    /// What the claim tests before it changes anything.
    seen: Seen,
    /// What the claim will have been.
    as_what: How,
    /// Whether the cordon will be ours to take away.
    cordoned_by_us: bool,
}

/// A claim counts while the node is cordoned. One that somebody has uncordoned since, or that
/// we cannot read, is claimed anew; one that was handed on to us becomes ours, so that a second
/// delivery of what handed it on finds it taken.
fn standing(seen: Seen, claimant: &Claimant) -> Standing {
    let mark = seen.annotation.as_deref().and_then(|text| serde_json::from_str::<Mark>(text).ok());
    match mark.filter(|_| seen.cordoned) {
        None if seen.cordoned => Standing::Free(Free { seen, as_what: How::CordonedByOthers, cordoned_by_us: false }),
        None => Standing::Free(Free { seen, as_what: How::First, cordoned_by_us: true }),
        Some(mark) if mark.event != claimant.mark.event => {
            Standing::Taken(How::Joined { notice: mark.notice, event: mark.event })
        }
        Some(mark) if mark.request == claimant.mark.request => Standing::Taken(How::Again),
        Some(mark) if Some(&mark.request) == claimant.handed_on_by.as_ref() => {
            Standing::Free(Free { seen, as_what: How::Again, cordoned_by_us: mark.cordoned })
        }
        Some(mark) => Standing::Taken(How::Joined { notice: mark.notice, event: mark.event }),
    }
}

/// A test with the value null passes only where nothing stands.
fn claim_patch(provider_id: &str, free: &Free, mark: &Mark) -> Patch {
    let expected = &free.seen;
    let annotations = PointerBuf::from_tokens(["metadata", "annotations"]);
    let annotation = PointerBuf::from_tokens(["metadata", "annotations", ANNOTATION]);
    let unschedulable = PointerBuf::from_tokens(["spec", "unschedulable"]);
    let mark = Mark { cordoned: free.cordoned_by_us, ..mark.clone() };
    let text = serde_json::to_string(&mark).expect("a mark is plain text and a flag");
    let tested = if expected.annotated { &annotation } else { &annotations };
    let mut operations = vec![
        test(PointerBuf::from_tokens(["spec", "providerID"]), json!(provider_id)),
        test(tested.clone(), json!(expected.annotation)),
        test(unschedulable.clone(), if expected.cordoned { json!(true) } else { Value::Null }),
    ];
    if !expected.cordoned {
        operations.push(add(unschedulable, json!(true)));
    }
    if !expected.annotated {
        operations.push(add(annotations, json!({})));
    }
    operations.push(add(annotation, json!(text)));
    Patch(operations)
}

fn test(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path, value })
}

fn add(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}

async fn patch(nodes: &Api<Node>, name: &str, patch: &Patch) -> Result<(), ApiError> {
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    call(nodes.patch_metadata(name, &params, &kube::api::Patch::Json::<()>(patch.clone()))).await.map(|_| ())
}

/// A node as the search sees it: what else an answer holds is not kept.
type Found = Object<FoundSpec, NotUsed>;

#[derive(Debug, Clone, Deserialize)]
struct FoundSpec {
    #[serde(rename = "providerID")]
    provider_id: Option<String>,
}

/// The last resort, when no guess was right: page through all nodes. Provider ids have no
/// field selector.
async fn find_by_provider_id(nodes: &Api<Node>, provider_id: &str) -> Result<Option<String>, ApiError> {
    let nodes = Api::<Found>::all_with(nodes.clone().into_client(), &ApiResource::erase::<Node>(&()));
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let answer = call(nodes.list(&page)).await?;
        let found = answer.items.into_iter().find(|node| node.spec.provider_id.as_deref() == Some(provider_id));
        if let Some(node) = found {
            return Ok(node.metadata.name);
        }
        match answer.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::collections::BTreeMap;

    use super::*;
    use crate::interruption::InstanceId;

    fn instance(dns_name: Option<&str>) -> Instance {
        Instance {
            id: InstanceId::parse("i-0123456789abcdef0").unwrap(),
            zone: "us-east-1a".to_owned(),
            private_dns_name: dns_name.map(str::to_owned),
            tags: BTreeMap::new(),
        }
    }

    fn mark(event: &str, request: &str) -> Mark {
        let notice = "terminate lifecycle action".to_owned();
        Mark { event: event.to_owned(), request: request.to_owned(), notice, until: None, cordoned: true }
    }

    fn claimant(event: &str, request: &str) -> Claimant {
        Claimant { mark: mark(event, request), handed_on_by: None }
    }

    fn marked(cordoned: bool, mark: &Mark) -> Seen {
        Seen { cordoned, annotation: Some(serde_json::to_string(mark).unwrap()), annotated: true }
    }

    fn first(seen: Seen) -> Free {
        Free { seen, as_what: How::First, cordoned_by_us: true }
    }

    fn joined(event: &str) -> Standing {
        Standing::Taken(How::Joined { notice: "terminate lifecycle action".to_owned(), event: event.to_owned() })
    }

    #[test]
    fn the_private_dns_name_is_the_first_guess() {
        assert_eq!(
            guesses(&instance(Some("ip-10-0-0-1.ec2.internal"))),
            ["ip-10-0-0-1.ec2.internal", "i-0123456789abcdef0", "i-0123456789abcdef0.ec2.internal"]
        );
        assert_eq!(
            guesses(&instance(Some("i-0123456789abcdef0.ec2.internal"))),
            ["i-0123456789abcdef0.ec2.internal", "i-0123456789abcdef0"]
        );
        assert_eq!(guesses(&instance(None)), ["i-0123456789abcdef0"]);
    }

    #[test]
    fn the_claim_tests_all_it_relies_on_before_it_changes_anything() {
        let free = first(Seen::untouched());
        let patch = claim_patch("aws:///us-east-1a/i-0123456789abcdef0", &free, &mark("e-1", "r-1"));
        insta::assert_snapshot!(serde_json::to_string_pretty(&patch).unwrap());
    }

    #[test]
    fn a_node_that_others_cordoned_is_marked_as_not_cordoned_by_us() {
        let seen = Seen { cordoned: true, ..Seen::untouched() };
        let Standing::Free(free) = standing(seen, &claimant("e-1", "r-1")) else { panic!("it is taken") };
        assert_eq!(free.as_what, How::CordonedByOthers);
        let patch = claim_patch("aws:///us-east-1a/i-0123456789abcdef0", &free, &mark("e-1", "r-1"));
        insta::assert_snapshot!(serde_json::to_string_pretty(&patch).unwrap());
    }

    #[test]
    fn a_second_notice_joins_and_a_second_attempt_goes_on() {
        let seen = marked(true, &mark("e-1", "r-1"));
        assert_eq!(standing(seen.clone(), &claimant("e-1", "r-1")), Standing::Taken(How::Again));
        assert_eq!(standing(seen, &claimant("e-2", "r-2")), joined("e-1"));
    }

    #[test]
    fn a_second_delivery_of_the_same_event_joins() {
        assert_eq!(standing(marked(true, &mark("e-1", "r-1")), &claimant("e-1", "r-2")), joined("e-1"));
    }

    #[test]
    fn a_claim_that_was_handed_on_is_taken_over_once() {
        let handed_on = Claimant { handed_on_by: Some("r-1".to_owned()), ..claimant("e-1", "r-2") };
        let seen = marked(true, &mark("e-1", "r-1"));
        let Standing::Free(free) = standing(seen, &handed_on) else { panic!("it is not handed on") };
        assert_eq!((&free.as_what, free.cordoned_by_us), (&How::Again, true));
        let patch = claim_patch("aws:///us-east-1a/i-0123456789abcdef0", &free, &handed_on.mark);
        insta::assert_snapshot!(serde_json::to_string_pretty(&patch).unwrap());

        let second_delivery = Claimant { handed_on_by: Some("r-1".to_owned()), ..claimant("e-1", "r-3") };
        assert_eq!(standing(marked(true, &handed_on.mark), &second_delivery), joined("e-1"));
        let retry_of_the_first = claimant("e-1", "r-1");
        assert_eq!(standing(marked(true, &handed_on.mark), &retry_of_the_first), joined("e-1"));
    }

    #[test]
    fn a_cordon_that_was_not_ours_is_not_ours_when_the_claim_is_handed_on() {
        let others = Mark { cordoned: false, ..mark("e-1", "r-1") };
        let handed_on = Claimant { handed_on_by: Some("r-1".to_owned()), ..claimant("e-1", "r-2") };
        let Standing::Free(free) = standing(marked(true, &others), &handed_on) else { panic!("it is not handed on") };
        assert!(!free.cordoned_by_us);
    }

    #[test]
    fn a_node_that_was_uncordoned_since_is_claimed_anew() {
        let seen = marked(false, &mark("e-1", "r-1"));
        assert_eq!(standing(seen.clone(), &claimant("e-1", "r-1")), Standing::Free(first(seen)));
    }

    #[test]
    fn an_annotation_that_cannot_be_read_does_not_stop_a_drain() {
        let seen = Seen { cordoned: true, annotation: Some("{".to_owned()), annotated: true };
        let free = Free { seen: seen.clone(), as_what: How::CordonedByOthers, cordoned_by_us: false };
        assert_eq!(standing(seen, &claimant("e-1", "r-1")), Standing::Free(free));
    }
}

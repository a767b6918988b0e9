use kube_core::Selector;
use serde_json::json;
use spillway_notice::continued::Earlier;

use super::*;
use crate::node::claim_annotation::Pace;

const PROVIDER_ID: &str = "aws:///us-east-1a/i-0123456789abcdef0";
/// Taint of the claim.
const OURS: &str = "spillway/terminate-lifecycle-action=e-1:NoSchedule";

fn annotation(event: &str, request: &str) -> ClaimAnnotation {
    ClaimAnnotation::new(event, request, Kind::Terminate)
}

/// Request for a claim of any node.
fn claimant(annotation: ClaimAnnotation) -> Claimant<'static> {
    static ANY: std::sync::LazyLock<Selector> = std::sync::LazyLock::new(Selector::default);
    Claimant {
        annotation,
        earlier: &[],
        reboots: false,
        requires_existing_claim: false,
        taint: None,
        excludes: false,
        managed_by: ManagedBy::SelfManaged,
        selector: &ANY,
    }
}

/// An earlier invocation that held the claim.
fn earlier(request: &str) -> Earlier {
    let (from, to, node) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH, Some("n-1".to_owned()));
    Earlier { request_id: request.to_owned(), from, to, node, pods: [].into() }
}

fn annotated(cordoned: bool, annotation: &ClaimAnnotation) -> ObservedNode {
    let annotations = [(ANNOTATION.to_owned(), annotation.text())].into();
    ObservedNode { cordoned, annotations: Some(annotations), ..ObservedNode::untouched() }
}

fn labelled(labels: &[(&str, &str)]) -> ObservedNode {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    ObservedNode { labels: Some(labels), ..ObservedNode::untouched() }
}

fn taint(text: &str) -> Taint {
    let (pair, effect) = text.split_once(':').unwrap();
    let (key, value) = pair.split_once('=').unwrap();
    Taint { key: key.to_owned(), value: Some(value.to_owned()), effect: effect.to_owned(), time_added: None }
}

fn free(observed: ObservedNode, claimant: &Claimant<'_>) -> Free {
    match claim_state(observed, "n-1", claimant) {
        ClaimState::Free(free) => *free,
        other => panic!("not free: {other:?}"),
    }
}

fn joined(event: &str) -> ClaimResult {
    ClaimResult::Joined { notice: "terminate lifecycle action".to_owned(), event: event.to_owned() }
}

/// The patch, an operation a line.
fn patch(observed: ObservedNode, claimant: &Claimant<'_>) -> String {
    let patch = free(observed, claimant).patch(PROVIDER_ID, claimant);
    patch.0.iter().map(|operation| serde_json::to_string(operation).unwrap() + "\n").collect()
}

/// The first request for a claim of the event.
fn first() -> Claimant<'static> {
    claimant(annotation("e-1", "r-1"))
}

/// A later invocation of the event's notice.
fn continuation(earlier: &[Earlier]) -> Claimant<'_> {
    Claimant { earlier, ..claimant(annotation("e-1", "r-2")) }
}

fn tainted(taints: &[&str]) -> ObservedNode {
    ObservedNode { taints: taints.iter().map(|text| taint(text)).collect(), ..ObservedNode::untouched() }
}

/// The node controller taints a node some time after its cordon.
#[test]
fn time_of_a_cordon_is_that_of_its_taint() {
    let since = |cordoned: bool, key: &str| {
        let taint = json!({"key": key, "effect": "NoSchedule", "timeAdded": "2026-11-21T03:12:00Z"});
        let spec = json!({"unschedulable": cordoned, "taints": [taint]});
        let node = serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": spec})).unwrap();
        ObservedNode::of(&node).cordoned_since()
    };
    let cordon = "node.kubernetes.io/unschedulable";
    assert_eq!(since(true, cordon), Some("2026-11-21T03:12:00Z".parse().unwrap()));
    assert_eq!([since(true, "spillway/planned"), since(false, cordon)], [None, None]);
}

#[test]
fn claim_leaves_all_its_marks() {
    let claimant = Claimant { taint: Some(taint(OURS)), excludes: true, ..first() };
    insta::assert_snapshot!(patch(ObservedNode::untouched(), &claimant));
    let foreign_label = patch(labelled(&[(labels::EXCLUDED, "karpenter")]), &claimant);
    assert!(!foreign_label.contains("exclude-from-external-load-balancers"), "{foreign_label}");
}

#[test]
fn claim_adds_missing_maps() {
    let bare = ObservedNode { labels: None, annotations: None, ..ObservedNode::untouched() };
    let patch = patch(bare, &Claimant { excludes: true, ..first() });
    for map in ["annotations", "labels"] {
        assert!(patch.contains(&format!(r#"{{"op":"test","path":"/metadata/{map}","value":null}}"#)), "{patch}");
        assert!(patch.contains(&format!(r#"{{"op":"add","path":"/metadata/{map}","value":{{}}}}"#)), "{patch}");
    }
}

#[test]
fn claim_adds_its_taint_once_and_removes_that_of_waiting() {
    let claimant = Claimant { taint: Some(taint(OURS)), ..first() };
    let with_others = patch(tainted(&["team=shop:NoSchedule"]), &claimant);
    assert!(with_others.contains(r#""path":"/spec/taints/-""#) && !with_others.contains(r#""path":"/spec/taints""#));

    // Kubernetes accepts each key and effect once: a foreign taint stays, and is not ours.
    let foreign = free(tainted(&["spillway/terminate-lifecycle-action=e-0:NoSchedule"]), &claimant);
    assert_eq!((foreign.taint, foreign.annotation.taints), (None, Vec::new()));

    let milder = ClaimAnnotation { notice: "rebalance recommendation".to_owned(), ..annotation("e-0", "r-0") };
    let milder = ClaimAnnotation { taints: vec!["spillway/rebalance=e-0:NoSchedule".to_owned()], ..milder };
    let taken_over = free(annotated(true, &milder), &claimant).annotation.taints;
    assert_eq!(taken_over, ["spillway/rebalance=e-0:NoSchedule", OURS]);

    let before = ClaimAnnotation { taints: vec![OURS.to_owned()], ..annotation("e-1", "r-1") };
    let earlier_invocations = [earlier("r-1")];
    let continued = Claimant { taint: Some(taint(OURS)), ..continuation(&earlier_invocations) };
    let removed = free(annotated(true, &before), &continued);
    assert_eq!((removed.taint, removed.annotation.taints.len()), (None, 1), "a removed taint is not added again");

    let waited = patch(tainted(&["team=shop:NoSchedule", "spillway/planned=e-1:PreferNoSchedule"]), &first());
    assert!(waited.contains(r#"{"op":"test","path":"/spec/taints/1/key","value":"spillway/planned"}"#), "{waited}");
    assert!(waited.contains(r#"{"op":"remove","path":"/spec/taints/1"}"#), "{waited}");
}

#[test]
fn cordoned_node_is_claimed_without_its_cordon() {
    let cordoned = ObservedNode { cordoned: true, ..ObservedNode::untouched() };
    let unreadable = Some([(ANNOTATION.to_owned(), "{".to_owned())].into());
    for observed in [cordoned.clone(), ObservedNode { annotations: unreadable, ..cordoned.clone() }] {
        let free = free(observed, &first());
        assert_eq!((free.how, free.annotation.cordoned), (ClaimResult::CordonedByOthers, false));
    }
    assert!(!patch(cordoned, &first()).contains(r#""op":"add","path":"/spec/unschedulable""#));
}

#[test]
fn opted_out_unselected_and_foreign_nodes_are_barred() {
    let shop: Selector = [("team".to_owned(), "shop".to_owned())].into_iter().collect();
    let (opted_out, node_group) =
        (labelled(&[(labels::IGNORE, "")]), labelled(&[("eks.amazonaws.com/nodegroup", "blue")]));
    let claimed = ObservedNode { labels: opted_out.labels.clone(), ..annotated(true, &annotation("e-1", "r-1")) };
    let selects_shop = Claimant { selector: &shop, ..first() };
    for (observed, claimant, why) in [
        (opted_out, &first(), Unclaimed::OptedOut("n-1".to_owned())),
        (claimed, &first(), Unclaimed::OptedOut("n-1".to_owned())),
        (node_group.clone(), &first(), Unclaimed::ManagedBy(ManagedBy::ManagedNodeGroup)),
        (ObservedNode::untouched(), &selects_shop, Unclaimed::NotSelected("n-1".to_owned())),
    ] {
        assert_eq!(claim_state(observed, "n-1", claimant), ClaimState::Barred(why));
    }
    assert_eq!(free(labelled(&[("team", "shop")]), &selects_shop).how, ClaimResult::First);
    let known_owner = Claimant { managed_by: ManagedBy::ManagedNodeGroup, ..first() };
    assert!(!patch(node_group, &known_owner).contains("nodegroup"), "decided without a test");
}

#[test]
fn claim_of_a_cordoned_node_is_joined_or_continued() {
    let claimed = annotated(true, &annotation("e-1", "r-1"));
    for (event, request, how) in
        [("e-1", "r-1", ClaimResult::Again), ("e-2", "r-2", joined("e-1")), ("e-1", "r-2", joined("e-1"))]
    {
        assert_eq!(claim_state(claimed.clone(), "n-1", &claimant(annotation(event, request))), ClaimState::Taken(how));
    }
    let uncordoned = free(annotated(false, &annotation("e-1", "r-1")), &first());
    assert_eq!((uncordoned.how, uncordoned.annotation.cordoned), (ClaimResult::First, true), "claimed again");
}

#[test]
fn continued_claim_is_taken_over_once() {
    let earlier_invocations = [earlier("r-1")];
    let continued = continuation(&earlier_invocations);
    let claimed = annotated(true, &annotation("e-1", "r-1"));
    assert_eq!(free(claimed.clone(), &continued).how, ClaimResult::Again);
    insta::assert_snapshot!(patch(claimed, &continued));
    let foreign_cordon = ClaimAnnotation { cordoned: false, ..annotation("e-1", "r-1") };
    assert!(!free(annotated(true, &foreign_cordon), &continued).annotation.cordoned);

    let taken = annotated(true, &continued.annotation);
    let second_delivery = Claimant { annotation: annotation("e-1", "r-3"), ..continued };
    let by_another = ClaimState::Barred(Unclaimed::DrainedByAnother("n-1".to_owned()));
    assert_eq!(claim_state(taken.clone(), "n-1", &second_delivery), by_another);
    assert_eq!(claim_state(taken, "n-1", &first()), ClaimState::Taken(joined("e-1")), "a retry of the first");
}

#[test]
fn continuation_leaves_its_events_claim_to_another_invocation() {
    let earlier_invocations = [earlier("r-0"), earlier("r-1")];
    let continuation = continuation(&earlier_invocations);
    let state = |event, request| claim_state(annotated(true, &annotation(event, request)), "n-1", &continuation);
    assert_eq!(state("e-1", "r-9"), ClaimState::Barred(Unclaimed::DrainedByAnother("n-1".to_owned())));
    assert_eq!(state("e-1", "r-2"), ClaimState::Taken(ClaimResult::Again), "Lambda's retry of the continuation");
    for request in ["r-0", "r-1"] {
        assert!(matches!(state("e-1", request), ClaimState::Free(free) if free.how == ClaimResult::Again), "{request}");
    }
    assert_eq!(state("e-0", "r-9"), ClaimState::Taken(joined("e-0")), "another event's claim");
    let unaware = Claimant { earlier: &[Earlier { node: None, ..earlier("r-1") }], ..continuation.clone() };
    let claimed = annotated(true, &annotation("e-1", "r-1"));
    assert_eq!(free(claimed, &unaware).how, ClaimResult::Again, "the answer to the earlier claim was lost");
}

#[test]
fn continuation_does_not_claim_a_node_given_back() {
    let given_back = ObservedNode::untouched();
    let foreign = ObservedNode { cordoned: true, ..ObservedNode::untouched() };
    for (notice, may_have_gone) in
        [("scheduled maintenance", true), ("rebalance recommendation", true), ("terminate lifecycle action", false)]
    {
        let of = |request| ClaimAnnotation { notice: notice.to_owned(), ..annotation("e-1", request) };
        let first = claimant(of("r-1"));
        let continuation = Claimant { earlier: &[earlier("r-1")], ..claimant(of("r-2")) };
        for observed in [given_back.clone(), annotated(false, &of("r-1")), foreign.clone()] {
            let barred = |claimant| matches!(claim_state(observed.clone(), "n-1", claimant), ClaimState::Barred(_));
            assert_eq!((barred(&continuation), barred(&first)), (may_have_gone, false), "{notice}: {observed:?}");
        }
        assert_eq!(free(annotated(true, &of("r-1")), &continuation).how, ClaimResult::Again);
        // The joined claim is over, and not this notice's.
        let joined_before = Claimant { earlier: &[Earlier { node: None, ..earlier("r-1") }], ..continuation };
        assert_eq!(free(given_back.clone(), &joined_before).how, ClaimResult::First);
    }
}

#[test]
fn begun_maintenance_continues_only_with_its_claim() {
    let claimant = Claimant { requires_existing_claim: true, ..claimant(annotation("e-2", "r-2")) };
    let barred = ClaimState::Barred(Unclaimed::MaintenanceBegan("n".to_owned()));
    for observed in [ObservedNode::untouched(), annotated(false, &annotation("e-1", "r-1"))] {
        assert_eq!(claim_state(observed, "n", &claimant), barred);
    }
    let continues = claim_state(annotated(true, &annotation("e-1", "r-1")), "n", &claimant);
    assert!(!matches!(continues, ClaimState::Barred(_)), "{continues:?}");
}

#[test]
fn milder_claim_gives_way_and_the_tightest_deadline_stays() {
    let of = |notice: &str, until: Option<i64>| ClaimAnnotation {
        notice: notice.to_owned(),
        until: until.map(|second| Timestamp::from_second(second).unwrap()),
        ..annotation(notice, notice)
    };
    let orders = [
        ("rebalance recommendation", "spot interruption"),
        ("rebalance recommendation", "scheduled maintenance"),
        ("scheduled maintenance", "instance stopping"),
        ("spot interruption", "terminate lifecycle action"),
        ("instance stopping", "instance shutting down"),
    ];
    for (milder, worse) in orders {
        let first = ClaimAnnotation { cordoned: false, ..of(milder, Some(200)) };
        let taken_over = free(annotated(true, &first), &claimant(of(worse, Some(300))));
        assert_eq!(taken_over.how, ClaimResult::joined(&first), "{milder}, {worse}");
        assert_eq!(
            taken_over.annotation,
            ClaimAnnotation { cordoned: false, ..of(worse, Some(200)) },
            "{milder}, {worse}"
        );
        let the_other_way = claim_state(annotated(true, &of(worse, None)), "n-1", &claimant(of(milder, None)));
        assert_eq!(the_other_way, ClaimState::Taken(ClaimResult::joined(&of(worse, None))), "{worse}, {milder}");
    }
    let tightest = |first: Option<i64>, second: Option<i64>| {
        let first = of("rebalance recommendation", first);
        free(annotated(true, &first), &claimant(of("spot interruption", second)))
            .annotation
            .until
            .map(Timestamp::as_second)
    };
    assert_eq!(tightest(Some(300), Some(200)), Some(200));
    assert_eq!(tightest(None, Some(200)), Some(200));
    assert_eq!(tightest(Some(300), None), Some(300));
}

#[test]
fn reboot_claim_keeps_the_boot_id_of_its_begin() {
    let reboot = Claimant { reboots: true, ..claimant(annotation("e-1", "r-1")) };
    let booted = |boot: &str, observed| ObservedNode { boot: Some(boot.to_owned()), ..observed };
    let first = free(booted("b-1", ObservedNode::untouched()), &reboot).annotation;
    assert_eq!(first.boot.as_deref(), Some("b-1"));
    let without = claimant(annotation("e-1", "r-1"));
    assert_eq!(free(booted("b-1", ObservedNode::untouched()), &without).annotation.boot, None);
    let milder = ClaimAnnotation { notice: "rebalance recommendation".to_owned(), ..annotation("e-0", "r-0") };
    assert_eq!(free(booted("b-1", annotated(true, &milder)), &reboot).annotation.boot.as_deref(), Some("b-1"));

    let later = Claimant { earlier: &[earlier("r-1")], annotation: annotation("e-1", "r-2"), ..reboot };
    assert_eq!(free(booted("b-2", annotated(true, &first)), &later).annotation.boot.as_deref(), Some("b-1"));
}

#[test]
fn node_is_read_first_if_a_patch_cannot_test_enough() {
    static SOME: std::sync::LazyLock<Selector> =
        std::sync::LazyLock::new(|| [("team".to_owned(), "shop".to_owned())].into_iter().collect());
    let pace = Pace { group: None, claimed: Timestamp::UNIX_EPOCH, over: false };
    let plain = || claimant(annotation("e-1", "r-1"));
    assert!(!plain().must_read_node_first());
    let look_first = [
        Claimant { reboots: true, ..plain() },
        Claimant { requires_existing_claim: true, ..plain() },
        Claimant { earlier: &[earlier("r-0")], ..plain() },
        Claimant { selector: &SOME, ..plain() },
        claimant(ClaimAnnotation { pace: Some(pace), ..annotation("e-1", "r-1") }),
    ];
    assert!(look_first.iter().all(Claimant::must_read_node_first));
}

#[test]
fn instance_goes_unless_its_notice_may_be_called_off() {
    let goes = |kind| claimant(ClaimAnnotation::new("e-1", "r-1", kind)).instance_goes();
    assert_eq!([Kind::Spot, Kind::Terminate, Kind::Rebalance, Kind::Maintenance].map(goes), [true, true, false, false]);
}

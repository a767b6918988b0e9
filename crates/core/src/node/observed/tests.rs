use kube_core::Selector;
use serde_json::json;
use spillway_notice::continued::Earlier;

use super::*;
use crate::node::claim_annotation::Pace;

const PROVIDER_ID: &str = "aws:///us-east-1a/i-0123456789abcdef0";

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
        other => panic!("it is not free: {other:?}"),
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
fn claim_tests_the_node_before_it_changes_it() {
    insta::assert_snapshot!(patch(ObservedNode::untouched(), &claimant(annotation("e-1", "r-1"))));
}

#[test]
fn claim_leaves_all_its_marks() {
    let taint = Some(taint("spillway/terminate-lifecycle-action=e-1:NoSchedule"));
    let claimant = Claimant { taint, excludes: true, ..claimant(annotation("e-1", "r-1")) };
    insta::assert_snapshot!(patch(ObservedNode::untouched(), &claimant));
}

#[test]
fn claim_adds_missing_maps() {
    let claimant = Claimant { excludes: true, ..claimant(annotation("e-1", "r-1")) };
    let bare = ObservedNode { labels: None, annotations: None, ..ObservedNode::untouched() };
    insta::assert_snapshot!(patch(bare, &claimant));
}

#[test]
fn taint_is_appended_unless_its_key_and_effect_are_taken() {
    let ours = taint("spillway/terminate-lifecycle-action=e-1:NoSchedule");
    let claimant = Claimant { taint: Some(ours.clone()), ..claimant(annotation("e-1", "r-1")) };
    let tainted = |others: &[Taint]| ObservedNode { taints: others.to_vec(), ..ObservedNode::untouched() };
    let with_others = patch(tainted(&[taint("team=shop:NoSchedule")]), &claimant);
    assert!(with_others.contains(r#""path":"/spec/taints/-""#) && !with_others.contains(r#""path":"/spec/taints""#));

    // Kubernetes accepts each key and effect once: a foreign taint stays, and is not ours.
    let same = Taint { value: Some("e-0".to_owned()), ..ours };
    let free = free(tainted(&[same]), &claimant);
    assert_eq!((free.taint, free.annotation.taints), (None, Vec::new()));
}

#[test]
fn annotation_names_also_the_former_claims_taints() {
    let before =
        ClaimAnnotation { taints: vec!["spillway/rebalance=e-0:NoSchedule".to_owned()], ..annotation("e-0", "r-0") };
    let before = ClaimAnnotation { notice: "rebalance recommendation".to_owned(), ..before };
    let taint = Some(taint("spillway/terminate-lifecycle-action=e-1:NoSchedule"));
    let claimant = Claimant { taint, ..claimant(annotation("e-1", "r-1")) };
    assert_eq!(
        free(annotated(true, &before), &claimant).annotation.taints,
        ["spillway/rebalance=e-0:NoSchedule", "spillway/terminate-lifecycle-action=e-1:NoSchedule"]
    );
}

#[test]
fn removed_taint_is_not_added_again() {
    let ours = taint("spillway/terminate-lifecycle-action=e-1:NoSchedule");
    let before = ClaimAnnotation { taints: vec![taint::text(&ours)], ..annotation("e-1", "r-1") };
    let claimant = Claimant { taint: Some(ours), earlier: &[earlier("r-1")], ..claimant(annotation("e-1", "r-2")) };
    let free = free(annotated(true, &before), &claimant);
    assert_eq!((free.taint, free.annotation.taints.len()), (None, 1));
}

#[test]
fn foreign_load_balancer_label_stays() {
    let claimant = Claimant { excludes: true, ..claimant(annotation("e-1", "r-1")) };
    let patch = patch(labelled(&[(labels::EXCLUDED, "karpenter")]), &claimant);
    assert!(!patch.contains("exclude-from-external-load-balancers"), "{patch}");
}

#[test]
fn cordoned_node_is_claimed_without_its_cordon() {
    let claimant = claimant(annotation("e-1", "r-1"));
    let observed = ObservedNode { cordoned: true, ..ObservedNode::untouched() };
    assert_eq!(free(observed.clone(), &claimant).how, ClaimResult::CordonedByOthers);
    insta::assert_snapshot!(patch(observed, &claimant));
}

#[test]
fn opted_out_node_is_barred_even_with_a_claim() {
    let barred = |observed| claim_state(observed, "n-1", &claimant(annotation("e-1", "r-1")));
    let opted_out = labelled(&[(labels::IGNORE, "")]);
    assert_eq!(barred(opted_out.clone()), ClaimState::Barred(Unclaimed::OptedOut("n-1".to_owned())));
    let claimed = ObservedNode { labels: opted_out.labels, ..annotated(true, &annotation("e-1", "r-1")) };
    assert_eq!(barred(claimed), ClaimState::Barred(Unclaimed::OptedOut("n-1".to_owned())));
}

#[test]
fn owner_label_counts_if_the_tags_name_no_owner() {
    let observed = labelled(&[("eks.amazonaws.com/nodegroup", "blue")]);
    let by_tags = claimant(annotation("e-1", "r-1"));
    let another = ClaimState::Barred(Unclaimed::ManagedBy(ManagedBy::ManagedNodeGroup));
    assert_eq!(claim_state(observed.clone(), "n-1", &by_tags), another);
    let by_label = Claimant { managed_by: ManagedBy::ManagedNodeGroup, ..by_tags };
    let claim = patch(observed, &by_label);
    assert!(!claim.contains("nodegroup"), "decided without a test: {claim}");
}

#[test]
fn only_selected_nodes_are_claimed() {
    let mut selector = Selector::default();
    selector.extend(kube_core::Expression::Equal("team".to_owned(), "shop".to_owned()));
    let claimant = Claimant { selector: &selector, ..claimant(annotation("e-1", "r-1")) };
    let not_selected = ClaimState::Barred(Unclaimed::NotSelected("n-1".to_owned()));
    assert_eq!(claim_state(ObservedNode::untouched(), "n-1", &claimant), not_selected);
    assert_eq!(free(labelled(&[("team", "shop")]), &claimant).how, ClaimResult::First);
}

#[test]
fn other_notice_or_delivery_joins_and_a_retry_continues() {
    let observed = annotated(true, &annotation("e-1", "r-1"));
    for (event, request, how) in
        [("e-1", "r-1", ClaimResult::Again), ("e-2", "r-2", joined("e-1")), ("e-1", "r-2", joined("e-1"))]
    {
        assert_eq!(claim_state(observed.clone(), "n-1", &claimant(annotation(event, request))), ClaimState::Taken(how));
    }
}

#[test]
fn continued_claim_is_taken_over_once() {
    let continued = Claimant { earlier: &[earlier("r-1")], ..claimant(annotation("e-1", "r-2")) };
    let observed = annotated(true, &annotation("e-1", "r-1"));
    assert_eq!(free(observed.clone(), &continued).how, ClaimResult::Again);
    insta::assert_snapshot!(patch(observed, &continued));

    let taken = annotated(true, &continued.annotation);
    let second_delivery = Claimant { earlier: &[earlier("r-1")], ..claimant(annotation("e-1", "r-3")) };
    let by_another = ClaimState::Barred(Unclaimed::DrainedByAnother("n-1".to_owned()));
    assert_eq!(claim_state(taken.clone(), "n-1", &second_delivery), by_another);
    let retry_of_the_first = claimant(annotation("e-1", "r-1"));
    assert_eq!(claim_state(taken, "n-1", &retry_of_the_first), ClaimState::Taken(joined("e-1")));
}

#[test]
fn continuation_leaves_its_events_claim_to_another_invocation() {
    let continuation = Claimant { earlier: &[earlier("r-1"), earlier("r-2")], ..claimant(annotation("e-1", "r-3")) };
    let state = |event, request| claim_state(annotated(true, &annotation(event, request)), "n-1", &continuation);
    assert_eq!(state("e-1", "r-9"), ClaimState::Barred(Unclaimed::DrainedByAnother("n-1".to_owned())));
    assert_eq!(state("e-1", "r-3"), ClaimState::Taken(ClaimResult::Again), "Lambda's retry of the continuation");
    for request in ["r-1", "r-2"] {
        assert!(matches!(state("e-1", request), ClaimState::Free(free) if free.how == ClaimResult::Again), "{request}");
    }
    assert_eq!(state("e-0", "r-9"), ClaimState::Taken(joined("e-0")), "another event's claim");
    let lost_answer = Claimant { earlier: &[Earlier { node: None, ..earlier("r-1") }], ..continuation.clone() };
    let observed = annotated(true, &annotation("e-1", "r-1"));
    assert_eq!(free(observed, &lost_answer).how, ClaimResult::Again, "the answer to the earlier claim was lost");
}

#[test]
fn continued_claim_does_not_own_a_foreign_cordon() {
    let others = ClaimAnnotation { cordoned: false, ..annotation("e-1", "r-1") };
    let continued = Claimant { earlier: &[earlier("r-1")], ..claimant(annotation("e-1", "r-2")) };
    assert!(!free(annotated(true, &others), &continued).annotation.cordoned);
}

#[test]
fn uncordoned_node_is_claimed_again() {
    let free = free(annotated(false, &annotation("e-1", "r-1")), &claimant(annotation("e-1", "r-1")));
    assert_eq!((free.how, free.annotation.cordoned), (ClaimResult::First, true));
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
fn unreadable_annotation_does_not_stop_a_drain() {
    let annotations = [(ANNOTATION.to_owned(), "{".to_owned())].into();
    let observed = ObservedNode { cordoned: true, annotations: Some(annotations), ..ObservedNode::untouched() };
    let free = free(observed, &claimant(annotation("e-1", "r-1")));
    assert_eq!((free.how, free.annotation.cordoned), (ClaimResult::CordonedByOthers, false));
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

#[test]
fn claim_removes_the_taint_of_a_node_that_has_waited() {
    let others = || taint("team=shop:NoSchedule");
    let observed = ObservedNode {
        taints: vec![others(), taint("spillway/planned=e-1:PreferNoSchedule")],
        ..ObservedNode::untouched()
    };
    let claimant = claimant(annotation("e-1", "r-1"));
    let patch = json!(free(observed, &claimant).patch(PROVIDER_ID, &claimant)).to_string();
    assert!(patch.contains(r#"{"op":"test","path":"/spec/taints/1/key","value":"spillway/planned"}"#), "{patch}");
    assert!(patch.contains(r#"{"op":"remove","path":"/spec/taints/1"}"#), "{patch}");
}

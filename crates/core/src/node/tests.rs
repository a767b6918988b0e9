//! Test of a node's invariants in any order of events: people's changes stay, and our marks go with our claim. The patches are
//! applied as the API server applies them.

use std::sync::LazyLock;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube_core::Selector;
use proptest::prelude::*;
use serde_json::{Value, json};
use spillway_contract::node::{is_cordoned, patched, stored};
use spillway_notice::Kind;
use spillway_settings::TaintNames;

use super::claim_annotation::{ANNOTATION, ClaimAnnotation};
use super::claimant::{ClaimResult, Claimant};
use super::labels::EXCLUDED;
use super::observed::{ClaimState, ObservedNode, claim_state};
use super::patch::FIELD_MANAGER;
use super::taint;
use super::uncordon::{UncordonCause, UncordonResult, decide};
use crate::instance::ManagedBy;
use crate::test_support::maintenance;

const PROVIDER_ID: &str = "aws:///us-east-1a/i-0123456789abcdef0";

#[derive(Debug, Clone)]
enum Event {
    Claim(Kind),
    UncordonCause(UncordonCause),
    PersonCordons,
    PersonUncordons,
    PersonTaints(u8),
    PersonLabels,
}

fn event() -> impl Strategy<Value = Event> {
    let kinds = [Kind::Rebalance, Kind::Maintenance, Kind::Stopping, Kind::Spot, Kind::Terminate];
    let overs = [
        UncordonCause::Rebalance,
        UncordonCause::Maintenance(maintenance("m-1")),
        UncordonCause::Stop { runs_since: Timestamp::UNIX_EPOCH },
    ];
    prop_oneof![
        4 => prop::sample::select(kinds.to_vec()).prop_map(Event::Claim),
        4 => prop::sample::select(overs.to_vec()).prop_map(Event::UncordonCause),
        2 => Just(Event::PersonCordons),
        2 => Just(Event::PersonUncordons),
        1 => (0..3_u8).prop_map(Event::PersonTaints),
        1 => Just(Event::PersonLabels),
    ]
}

/// The node in the API server, and people's changes to it.
struct World {
    node: Value,
    /// A person has cordoned the node, and the API server has recorded the person as the field's manager.
    cordoned_by_person: bool,
    taints_of_people: Vec<String>,
    labelled_by_person: bool,
    version: u64,
    claims: u32,
}

impl World {
    fn new() -> Self {
        let node = json!({
            "metadata": {"name": "n-1", "resourceVersion": "0", "labels": {"a": "b"}, "annotations": {"a": "b"}},
            "spec": {"providerID": PROVIDER_ID},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let (cordoned_by_person, labelled_by_person) = (false, false);
        Self { node, cordoned_by_person, taints_of_people: Vec::new(), labelled_by_person, version: 0, claims: 0 }
    }

    fn node(&self) -> Node {
        serde_json::from_value(self.node.clone()).unwrap()
    }

    fn taints(&self) -> Vec<String> {
        ObservedNode::of(&self.node()).taints.iter().map(taint::text).collect()
    }

    /// Applies a patch of that manager, if its tests pass.
    fn patch(&mut self, patch: &Value, manager: &str) -> bool {
        let Ok(patched) = patched(&self.node, patch) else { return false };
        self.version += 1;
        self.node = stored(Some(&self.node), patched, manager, self.version);
        true
    }

    fn person(&mut self, patch: &Value) {
        assert!(self.patch(patch, "kubectl-edit"));
    }

    fn happens(&mut self, event: &Event) -> Option<UncordonResult> {
        match event {
            Event::Claim(kind) => self.claim(*kind),
            Event::UncordonCause(over) => {
                let (patch, undone) = decide(&self.node(), over);
                assert!(
                    patch.is_none_or(|patch| self.patch(&json!(patch), FIELD_MANAGER)),
                    "decided by the present node"
                );
                return Some(undone);
            }
            Event::PersonCordons if !is_cordoned(&self.node) => {
                self.person(&json!([{"op": "add", "path": "/spec/unschedulable", "value": true}]));
                self.cordoned_by_person = true;
            }
            Event::PersonUncordons if is_cordoned(&self.node) => {
                self.person(&json!([{"op": "remove", "path": "/spec/unschedulable"}]));
                self.cordoned_by_person = false;
            }
            Event::PersonTaints(number) if !self.taints_of_people.contains(&format!("t-{number}=v:NoSchedule")) => {
                let taint = json!({"key": format!("t-{number}"), "value": "v", "effect": "NoSchedule"});
                let mut taints = self.node["spec"]["taints"].as_array().cloned().unwrap_or_default();
                taints.insert(0, taint);
                self.person(&json!([{"op": "add", "path": "/spec/taints", "value": taints}]));
                self.taints_of_people.push(format!("t-{number}=v:NoSchedule"));
            }
            Event::PersonLabels => {
                self.node["metadata"]["labels"][EXCLUDED] = json!("somebody");
                self.labelled_by_person = true;
            }
            Event::PersonCordons | Event::PersonUncordons | Event::PersonTaints(_) => {}
        }
        None
    }

    /// Claims as the function does: first by a guess, after a refusal by a read.
    fn claim(&mut self, kind: Kind) {
        static ANY: LazyLock<Selector> = LazyLock::new(Selector::default);
        self.claims += 1;
        let event = format!("e-{}", self.claims);
        let taint = taint::for_notice(kind, &event, TaintNames::Spillway);
        let annotation = ClaimAnnotation {
            maintenance: (kind == Kind::Maintenance).then(|| "m-1".to_owned()),
            ..ClaimAnnotation::new(&event, &event, kind)
        };
        let claimant = Claimant {
            annotation,
            earlier: &[],
            reboots: false,
            requires_existing_claim: false,
            taint,
            excludes: true,
            managed_by: ManagedBy::SelfManaged,
            selector: &ANY,
        };
        for observed in [ObservedNode::untouched(), ObservedNode::of(&self.node())] {
            match claim_state(observed, "n-1", &claimant) {
                ClaimState::Free(free) => {
                    if self.patch(&json!(free.patch(PROVIDER_ID, &claimant)), FIELD_MANAGER) {
                        return;
                    }
                }
                ClaimState::Taken(how) => return assert!(matches!(how, ClaimResult::Joined { .. }), "{how:?}"),
                ClaimState::Barred(why) => panic!("{why:?}"),
            }
        }
        panic!("the second attempt observes the present node");
    }
}

proptest! {
    #[test]
    fn changes_by_people_stay_and_marks_go_with_the_claim(events in prop::collection::vec(event(), 1..30)) {
        let mut world = World::new();
        for event in &events {
            let undone = world.happens(event);
            let taints = world.taints();
            prop_assert!(world.taints_of_people.iter().all(|theirs| taints.contains(theirs)), "{taints:?}");
            prop_assert!(!world.cordoned_by_person || is_cordoned(&world.node), "a person's cordon is gone");
            let labels = &world.node["metadata"]["labels"];
            prop_assert!(!world.labelled_by_person || labels[EXCLUDED] == json!("somebody"));
            let annotated = !world.node["metadata"]["annotations"][ANNOTATION].is_null();
            match undone {
                Some(UncordonResult::GivenBack { .. }) => prop_assert!(!is_cordoned(&world.node) && !annotated),
                Some(UncordonResult::LeftAlone { .. }) => prop_assert!(is_cordoned(&world.node) == world.cordoned_by_person && !annotated),
                Some(UncordonResult::Held { .. }) => prop_assert!(annotated),
                _ => {}
            }
            // Our marks exist only together with the annotation.
            prop_assert!(annotated || taints.iter().all(|taint| !taint.starts_with("spillway/")), "{taints:?}");
            prop_assert!(annotated || labels[EXCLUDED] != json!("spillway"));
            prop_assert!(annotated || is_cordoned(&world.node) == world.cordoned_by_person);
        }
    }
}

//! The pace of planned maintenance: how many nodes of one Auto Scaling group and zone drain at once. Pure.
//!
//! A drain lists the claims of its zone before its own claim, and again after it. Of drains that claim at once the last one finds
//! the claims of all others. So never more than the limit go on, even where clocks differ. The order of the claims, by time and
//! name, decides only which claim is taken back.

use std::fmt;

use jiff::Timestamp;
use json_patch::Patch;
use k8s_openapi::api::core::v1::Node;
use kube_core::ResourceExt as _;
use serde_json::Value;

use super::claim_annotation::{ANNOTATION, ClaimAnnotation, Pace};
use super::labels::IGNORE;
use super::observed::ObservedNode;
use super::patch::Operations;
use super::taint;

/// How many nodes of a cluster, Auto Scaling group and zone drain for planned maintenance at once.
pub const LIMIT: usize = 5;

/// The claims for planned maintenance on the cordoned nodes of a zone.
#[derive(Debug, Default)]
pub struct Claims(Vec<(String, Pace)>);

/// The order in which claims are taken back: the last first.
type Place<'a> = (Timestamp, &'a str);

/// What a drain does that has claimed its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Now,
    /// The drain looks again: later claims are about to be taken back.
    Soon(OtherDrains),
    Later(OtherDrains),
}

/// The number of other nodes of a group and zone that are being drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherDrains(pub usize);

impl fmt::Display for OtherDrains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "so many other nodes of its group and zone are being drained: {}", self.0)
    }
}

impl Claims {
    /// Adds the claim of a node, if its drain goes on. Past its start nobody drains for a maintenance by its pace.
    pub fn add(&mut self, node: &Node, now: Timestamp) {
        let claim = ObservedNode::of(node).claim();
        if let Some(ClaimAnnotation { pace: Some(pace), until, .. }) = claim
            && !pace.over
            && until.is_none_or(|until| now < until)
        {
            self.0.push((node.name_any(), pace));
        }
    }

    /// The drains that keep a node of that group from being claimed.
    pub fn before_claim(&self, node: &str, group: Option<&str>) -> Option<OtherDrains> {
        let others = self.others(node, group).count();
        (LIMIT <= others).then_some(OtherDrains(others))
    }

    /// The turn of a node that is claimed. A node without a claim for planned maintenance waits for none.
    pub fn turn(&self, node: &str) -> Turn {
        let Some((_, own)) = self.0.iter().find(|(name, _)| name == node) else { return Turn::Now };
        let others = || self.others(node, own.group.as_deref());
        let seen = OtherDrains(others().count());
        let ahead = others().filter(|other| *other < (own.claimed, node)).count();
        match (seen.0 < LIMIT, ahead < LIMIT) {
            (true, _) => Turn::Now,
            (false, true) => Turn::Soon(seen),
            (false, false) => Turn::Later(seen),
        }
    }

    fn others(&self, node: &str, group: Option<&str>) -> impl Iterator<Item = Place<'_>> {
        let of_group = self.0.iter().filter(move |(name, pace)| name != node && pace.group.as_deref() == group);
        of_group.map(|(name, pace)| (pace.claimed, name.as_str()))
    }
}

/// The patch that says in the claim of that event, if it is on the node, that its drain is over.
pub fn over(node: &Node, event: &str) -> Option<Patch> {
    let seen = ObservedNode::of(node);
    let claim = seen.claim().filter(|claim| claim.event == event)?.over()?;
    let mut patch = Operations::default();
    patch.test_entry("annotations", ANNOTATION, seen.annotations.as_ref());
    patch.add_entry("annotations", ANNOTATION, &claim.text(), seen.annotations.as_ref());
    Some(patch.done())
}

/// The patch that taints a node whose planned drain waits. `None`: the node has the taint, is cordoned, or opted out.
pub fn tainting(node: &Node, event: &str) -> Option<Patch> {
    let (seen, taint) = (ObservedNode::of(node), taint::planned(event));
    if seen.cordoned || seen.label(IGNORE).is_some() || !taint::fits(&taint, &seen.taints) {
        return None;
    }
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    let mut patch = Operations::default();
    patch.test(&["spec", "providerID"], provider_id);
    patch.test(&["spec", "unschedulable"], Value::Null);
    patch.test_entry("labels", IGNORE, seen.labels.as_ref());
    if seen.taints.is_empty() {
        patch.test(&["spec", "taints"], Value::Null);
    }
    patch.add_taint(&taint, &seen.taints);
    Some(patch.done())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spillway_notice::Kind;

    use super::*;
    use crate::test_support::at;

    const NOW: &str = "2026-12-24T02:00:00Z";

    /// A claim of that group, so many seconds after midnight.
    fn claim(group: &str, claimed_s: i64) -> ClaimAnnotation {
        let claimed = at("2026-12-24T00:00:00Z") + jiff::SignedDuration::from_secs(claimed_s);
        let pace = Pace { group: Some(group.to_owned()), claimed, over: false };
        let until = Some(at("2026-12-24T03:00:00Z"));
        ClaimAnnotation { pace: Some(pace), until, ..ClaimAnnotation::new("e", "r", Kind::Maintenance) }
    }

    fn node(name: &str, claim: &ClaimAnnotation, cordoned: bool) -> Node {
        let node = json!({
            "metadata": {"name": name, "labels": {}, "annotations": {ANNOTATION: claim.text()}},
            "spec": {"providerID": "aws:///us-east-1a/i-1", "unschedulable": cordoned.then_some(true)},
        });
        serde_json::from_value(node).unwrap()
    }

    fn claims<'a>(nodes: impl IntoIterator<Item = (&'a str, ClaimAnnotation)>) -> Claims {
        let mut claims = Claims::default();
        for (name, claim) in nodes {
            claims.add(&node(name, &claim, true), at(NOW));
        }
        claims
    }

    /// Claims of one group, a second apart.
    fn one_after_the_other(names: &[&str]) -> Claims {
        claims(names.iter().zip(0..).map(|(name, claimed_s)| (*name, claim("web", claimed_s))))
    }

    #[test]
    fn claim_waits_while_five_others_are_drained() {
        let five = one_after_the_other(&["a", "b", "c", "d", "e"]);
        assert_eq!(five.before_claim("f", Some("web")), Some(OtherDrains(5)));
        assert_eq!(five.before_claim("e", Some("web")), None, "its own claim is no other's");
        assert_eq!(five.before_claim("f", Some("batch")), None);
        assert_eq!(five.before_claim("f", None), None);
    }

    #[test]
    fn surplus_claims_are_the_last_by_time_and_name() {
        let seven = claims(
            [("g", 1), ("a", 2), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 1)]
                .map(|(name, at)| (name, claim("web", at))),
        );
        let turns = ["a", "b", "c", "d", "e", "f", "g"].map(|node| seven.turn(node));
        let (soon, later) = (Turn::Soon(OtherDrains(6)), Turn::Later(OtherDrains(6)));
        assert_eq!(turns, [later, soon, soon, soon, soon, soon, later]);
    }

    #[test]
    fn drain_begins_only_when_fewer_than_five_others_are_seen() {
        let six = one_after_the_other(&["a", "b", "c", "d", "e", "f"]);
        assert_eq!(six.turn("a"), Turn::Soon(OtherDrains(5)), "the clock of f may be fast, and f go on");
        assert_eq!(one_after_the_other(&["a", "b", "c", "d", "e"]).turn("e"), Turn::Now);
    }

    #[test]
    fn finished_past_and_foreign_claims_do_not_count() {
        let others = || ["b", "c", "d", "e"].map(|name| (name, claim("web", 1)));
        let over = claim("web", 1).over().unwrap();
        let past = ClaimAnnotation { until: Some(at(NOW)), ..claim("web", 1) };
        for free in [over, past, claim("batch", 1), ClaimAnnotation { pace: None, ..claim("web", 1) }] {
            let claims = claims(others().into_iter().chain([("a", claim("web", 2)), ("f", free)]));
            assert_eq!(claims.turn("a"), Turn::Now);
        }
    }

    #[test]
    fn claim_of_an_uncordoned_node_does_not_count() {
        let mut claims = one_after_the_other(&["a", "b", "c", "d"]);
        claims.add(&node("e", &claim("web", 1), false), at(NOW));
        assert_eq!(claims.before_claim("f", Some("web")), None);
    }

    #[test]
    fn claim_without_a_pace_begins_now() {
        let mut claims = one_after_the_other(&["a", "b", "c", "d", "e"]);
        claims.add(&node("f", &ClaimAnnotation::new("e-2", "r-2", Kind::Spot), true), at(NOW));
        assert_eq!(claims.turn("f"), Turn::Now);
    }

    #[test]
    fn only_the_claim_of_the_event_itself_becomes_over_and_once() {
        let claim = claim("web", 1);
        let patch = serde_json::to_value(over(&node("a", &claim, true), "e").unwrap()).unwrap();
        assert_eq!(patch[0]["value"], claim.text(), "nobody has written it since");
        assert_eq!(patch[1]["value"], claim.over().unwrap().text());
        assert_eq!(over(&node("a", &claim, true), "e-2"), None);
        assert_eq!(over(&node("a", &claim, false), "e"), None);
        assert_eq!(over(&node("a", &claim.over().unwrap(), true), "e"), None);
    }

    #[test]
    fn waiting_node_is_tainted_once() {
        let bare = |spec: Value, labels: Value| -> Node {
            serde_json::from_value(json!({"metadata": {"name": "n", "labels": labels}, "spec": spec})).unwrap()
        };
        let taint = |spec, labels| tainting(&bare(spec, labels), "e-1").map(|patch| json!(patch).to_string());
        let first = taint(json!({}), json!({})).unwrap();
        assert!(
            first.contains(r#""value":[{"effect":"PreferNoSchedule","key":"spillway/planned","value":"e-1"}]"#),
            "{first}"
        );
        let others = json!({"taints": [{"key": "team", "value": "shop", "effect": "NoSchedule"}]});
        assert!(taint(others, json!({})).unwrap().contains(r#""path":"/spec/taints/-""#));
        let tainted = json!({"taints": [{"key": "spillway/planned", "value": "e-0", "effect": "PreferNoSchedule"}]});
        assert_eq!(taint(tainted, json!({})), None);
        assert_eq!(taint(json!({"unschedulable": true}), json!({})), None);
        assert_eq!(taint(json!({}), json!({IGNORE: ""})), None);
    }
}

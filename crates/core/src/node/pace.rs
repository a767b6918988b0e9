//! Limits how many nodes of an Auto Scaling group and zone drain at once for planned maintenance. Pure.
//!
//! A drain counts the claims in its group and zone before and after it claims its node. If the limit is exceeded, the drain with
//! the newest claim removes its own claim and is postponed.

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

/// Maximum number of planned drains at once in one cluster, Auto Scaling group and zone.
pub const LIMIT: usize = 5;

/// Node names and claims. All nodes are in one zone, and all claims are for planned maintenance.
#[derive(Debug, Default)]
pub struct Claims(Vec<(String, Pace)>);

/// Time of a claim and name of its node. The newest claims are removed first.
type ClaimOrder<'a> = (Timestamp, &'a str);

/// Decision about a drain that has claimed its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaceDecision {
    /// The drain begins.
    Now,
    /// The drain waits until other drains have removed their newer claims. Then the claims are counted again.
    Soon(OtherDrains),
    /// The claim is removed, and the drain is postponed.
    Later(OtherDrains),
}

/// Number of other nodes that are being drained in the same group and zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherDrains(pub usize);

impl fmt::Display for OtherDrains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} other nodes of its group and zone are being drained", self.0)
    }
}

impl Claims {
    /// Counts the node's claim if the claim is for planned maintenance. Ignores the claim if its drain has ended, or if the
    /// start of the maintenance has passed.
    pub fn add(&mut self, node: &Node, now: Timestamp) {
        let claim = ObservedNode::of(node).claim();
        if let Some(ClaimAnnotation { pace: Some(pace), until, .. }) = claim
            && !pace.over
            && until.is_none_or(|until| now < until)
        {
            self.0.push((node.name_any(), pace));
        }
    }

    /// Returns the number of other drains if [`LIMIT`] is reached. Returns `None` if the node may be claimed.
    pub fn before_claim(&self, node: &str, group: Option<&str>) -> Option<OtherDrains> {
        let others = self.others(node, group).count();
        (LIMIT <= others).then_some(OtherDrains(others))
    }

    /// Returns the decision about the drain of a claimed node. If the node has no claim for planned maintenance, its
    /// drain begins.
    pub fn turn(&self, node: &str) -> PaceDecision {
        let Some((_, own)) = self.0.iter().find(|(name, _)| name == node) else { return PaceDecision::Now };
        let others = || self.others(node, own.group.as_deref());
        let observed = OtherDrains(others().count());
        let ahead = others().filter(|other| *other < (own.claimed, node)).count();
        match (observed.0 < LIMIT, ahead < LIMIT) {
            (true, _) => PaceDecision::Now,
            (false, true) => PaceDecision::Soon(observed),
            (false, false) => PaceDecision::Later(observed),
        }
    }

    fn others(&self, node: &str, group: Option<&str>) -> impl Iterator<Item = ClaimOrder<'_>> {
        let of_group = self.0.iter().filter(move |(name, pace)| name != node && pace.group.as_deref() == group);
        of_group.map(|(name, pace)| (pace.claimed, name.as_str()))
    }
}

/// Returns the patch that records in the claim annotation that the drain for `event` has ended. `None`: no patch is needed.
pub fn over(node: &Node, event: &str) -> Option<Patch> {
    let observed = ObservedNode::of(node);
    let claim = observed.claim().filter(|claim| claim.event == event)?.over()?;
    let mut patch = Operations::default();
    patch.test_entry("annotations", ANNOTATION, observed.annotations.as_ref());
    patch.add_entry("annotations", ANNOTATION, &claim.text(), observed.annotations.as_ref());
    Some(patch.done())
}

/// Returns the patch that adds the taint `spillway/planned`. `None`: the node already has the taint, is cordoned, or has the
/// opt-out label.
pub fn tainting(node: &Node, event: &str) -> Option<Patch> {
    let (observed, taint) = (ObservedNode::of(node), taint::planned(event));
    if observed.cordoned || observed.label(IGNORE).is_some() || !taint::fits(&taint, &observed.taints) {
        return None;
    }
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    let mut patch = Operations::default();
    patch.test(&["spec", "providerID"], provider_id);
    patch.test(&["spec", "unschedulable"], Value::Null);
    patch.test_entry("labels", IGNORE, observed.labels.as_ref());
    if observed.taints.is_empty() {
        patch.test(&["spec", "taints"], Value::Null);
    }
    patch.add_taint(&taint, &observed.taints);
    Some(patch.done())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spillway_notice::Kind;

    use super::*;
    use crate::test_support::at;

    const NOW: &str = "2026-12-24T02:00:00Z";

    /// Claim of the group, at that number of seconds after midnight.
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
        assert_eq!(five.before_claim("e", Some("web")), None, "its own claim does not count");
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
        let (soon, later) = (PaceDecision::Soon(OtherDrains(6)), PaceDecision::Later(OtherDrains(6)));
        assert_eq!(turns, [later, soon, soon, soon, soon, soon, later]);
    }

    #[test]
    fn drain_begins_only_beside_fewer_than_five_others() {
        let six = one_after_the_other(&["a", "b", "c", "d", "e", "f"]);
        assert_eq!(six.turn("a"), PaceDecision::Soon(OtherDrains(5)), "the clock of f may be fast, and f continue");
        assert_eq!(one_after_the_other(&["a", "b", "c", "d", "e"]).turn("e"), PaceDecision::Now);
    }

    #[test]
    fn finished_past_and_foreign_claims_do_not_count() {
        let others = || ["b", "c", "d", "e"].map(|name| (name, claim("web", 1)));
        let over = claim("web", 1).over().unwrap();
        let past = ClaimAnnotation { until: Some(at(NOW)), ..claim("web", 1) };
        for free in [over, past, claim("batch", 1), ClaimAnnotation { pace: None, ..claim("web", 1) }] {
            let claims = claims(others().into_iter().chain([("a", claim("web", 2)), ("f", free)]));
            assert_eq!(claims.turn("a"), PaceDecision::Now);
        }
    }

    #[test]
    fn uncordoned_node_and_claim_without_a_pace_do_not_wait() {
        let mut four = one_after_the_other(&["a", "b", "c", "d"]);
        four.add(&node("e", &claim("web", 1), false), at(NOW));
        assert_eq!(four.before_claim("f", Some("web")), None, "an uncordoned node is not drained");
        four.add(&node("f", &ClaimAnnotation::new("e-2", "r-2", Kind::Spot), true), at(NOW));
        assert_eq!(four.turn("f"), PaceDecision::Now);
    }

    #[test]
    fn event_ends_its_own_claim_once() {
        let claim = claim("web", 1);
        let patch = serde_json::to_value(over(&node("a", &claim, true), "e").unwrap()).unwrap();
        assert_eq!(patch[0]["value"], claim.text(), "unchanged");
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

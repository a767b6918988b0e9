//! The pace of drains for maintenance: whether one goes on that has claimed its node, beside those of the same group
//! and zone. Pure.
//!
//! Each claims first and looks then. So of any drains that go on at once the one that claimed last has seen all others: there
//! are never more than the limit, whatever the clocks say. The order of the claims only says who gives way.

use std::fmt;
use std::num::NonZeroUsize;

use jiff::Timestamp;
use json_patch::Patch;
use k8s_openapi::api::core::v1::Node;

use super::claim_annotation::{ANNOTATION, ClaimAnnotation, Pace};
use super::observed::ObservedNode;
use super::patch::Operations;

/// The nodes of a zone.
#[derive(Debug, Default)]
pub struct Zone {
    nodes: usize,
    /// Those that are not Ready.
    not_ready: Vec<String>,
    /// Those with a claim that has a pace, and until when it holds.
    paced: Vec<(String, Option<Timestamp>, Pace)>,
}

/// What a drain does that has claimed its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// It goes on.
    Now,
    /// It looks again: those behind it are about to give way.
    Soon(Obstacle),
    /// It gives way, or waits.
    Later(Obstacle),
}

/// What a drain gives way to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// So many others of its group and zone.
    Drains { others: usize },
    /// So many nodes of its zone are not Ready.
    NotReady { not_ready: usize, nodes: usize },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drains { others } => {
                write!(f, "so many other nodes of its group and zone are being drained: {others}")
            }
            Self::NotReady { not_ready, nodes } => {
                write!(f, "{not_ready} of the {nodes} nodes of its zone are not Ready")
            }
        }
    }
}

impl Zone {
    /// Adds a node, and its claim if it has one that counts.
    pub fn add(&mut self, name: &str, is_ready: bool, claim: Option<ClaimAnnotation>) {
        self.nodes += 1;
        if !is_ready {
            self.not_ready.push(name.to_owned());
        }
        if let Some(ClaimAnnotation { pace: Some(pace), until, .. }) = claim {
            self.paced.push((name.to_owned(), until, pace));
        }
    }

    /// Whether the drain of that node begins now or gives way. A node whose instance goes has no pace and never gives way. Nor does a
    /// node that is not Ready: its pods do not run.
    pub fn turn(&self, node: &str, at_once: NonZeroUsize, now: Timestamp) -> Turn {
        let at_once = at_once.get();
        let Some((_, _, own)) = self.paced.iter().find(|(name, ..)| name == node) else { return Turn::Now };
        if self.not_ready.iter().any(|name| name == node) {
            return Turn::Now;
        }
        let (not_ready, nodes) = (self.not_ready.len(), self.nodes);
        if not_ready > at_once.max(nodes / 10) {
            return Turn::Later(Obstacle::NotReady { not_ready, nodes });
        }
        // Whoever claimed a node whose time has come has been killed, or waits for what the node was drained for.
        let others = self.paced.iter().filter(|(name, until, pace)| {
            let goes_on = !pace.over && until.is_none_or(|until| now < until);
            goes_on && name != node && pace.group == own.group
        });
        let others: Vec<_> = others.map(|(name, _, pace)| (pace.claimed, name.as_str())).collect();
        let obstacle = Obstacle::Drains { others: others.len() };
        let ahead = others.iter().filter(|other| **other < (own.claimed, node)).count();
        match (others.len() < at_once, ahead < at_once) {
            (true, _) => Turn::Now,
            (false, true) => Turn::Soon(obstacle),
            (false, false) => Turn::Later(obstacle),
        }
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::NodeSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
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

    fn zone(nodes: &[(&str, ClaimAnnotation)]) -> Zone {
        let mut zone = Zone::default();
        for (name, claim) in nodes {
            zone.add(name, true, Some(claim.clone()));
        }
        zone
    }

    fn turn(zone: &Zone, node: &str, at_once: usize) -> Turn {
        zone.turn(node, NonZeroUsize::new(at_once).unwrap(), at(NOW))
    }

    fn drains(others: usize) -> Obstacle {
        Obstacle::Drains { others }
    }

    #[test]
    fn of_those_that_claimed_at_once_the_first_wait_for_the_others_to_give_way() {
        let claimed = [("d", 1), ("c", 1), ("b", 1), ("a", 2)].map(|(name, at_s)| (name, claim("web", at_s)));
        let all = zone(&claimed);
        let turns = ["a", "b", "c", "d"].map(|node| turn(&all, node, 2));
        assert_eq!(
            turns,
            [Turn::Later(drains(3)), Turn::Soon(drains(3)), Turn::Soon(drains(3)), Turn::Later(drains(3))]
        );
        let left = zone(&claimed[1..3]);
        assert_eq!(["b", "c"].map(|node| turn(&left, node, 2)), [Turn::Now, Turn::Now]);
    }

    #[test]
    fn none_goes_on_that_sees_as_many_others_as_the_limit_though_it_claimed_before_them() {
        let late = zone(&[("a", claim("web", 1)), ("b", claim("web", 2))]);
        assert_eq!(turn(&late, "a", 1), Turn::Soon(drains(1)), "b's clock may be fast, and b go on");
    }

    #[test]
    fn drains_that_are_idle_or_whose_time_has_come_and_those_of_other_groups_count_no_more() {
        let idle = claim("web", 1).over().unwrap();
        let past = ClaimAnnotation { until: Some(at(NOW)), ..claim("web", 1) };
        for other in [idle, past, claim("batch", 1), ClaimAnnotation { pace: None, ..claim("web", 1) }] {
            assert_eq!(turn(&zone(&[("a", claim("web", 2)), ("b", other)]), "a", 1), Turn::Now);
        }
    }

    #[test]
    fn a_node_that_goes_in_any_case_or_is_not_ready_gives_way_to_nobody() {
        let spot = ClaimAnnotation::new("e-2", "r-2", Kind::Spot);
        assert_eq!(turn(&zone(&[("a", spot), ("b", claim("web", 1))]), "a", 1), Turn::Now);
        let mut dead = zone(&[("b", claim("web", 1))]);
        dead.add("a", false, Some(claim("web", 2)));
        assert_eq!(turn(&dead, "a", 1), Turn::Now);
    }

    #[test]
    fn only_the_claim_of_the_event_itself_is_said_to_be_idle_and_once() {
        let node = |claim: &ClaimAnnotation, cordoned| Node {
            metadata: ObjectMeta {
                annotations: Some([(ANNOTATION.to_owned(), claim.text())].into()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec { unschedulable: Some(cordoned), ..NodeSpec::default() }),
            ..Node::default()
        };
        let patch = serde_json::to_value(over(&node(&claim("web", 1), true), "e").unwrap()).unwrap();
        assert_eq!(patch[0]["value"], claim("web", 1).text(), "nobody has written it since");
        assert_eq!(patch[1]["value"], claim("web", 1).over().unwrap().text());
        assert_eq!(over(&node(&claim("web", 1), true), "e-2"), None);
        assert_eq!(over(&node(&claim("web", 1), false), "e"), None);
        assert_eq!(over(&node(&claim("web", 1).over().unwrap(), true), "e"), None);
    }

    #[test]
    fn none_begins_while_more_nodes_are_not_ready_than_the_limit_and_a_tenth_of_the_zone() {
        let with = |not_ready: usize, ready: usize| {
            let mut zone = zone(&[("a", claim("web", 1))]);
            for n in 0..not_ready + ready {
                zone.add(&format!("n-{n}"), not_ready <= n, None);
            }
            turn(&zone, "a", 2)
        };
        assert_eq!(with(2, 0), Turn::Now);
        assert_eq!(with(3, 0), Turn::Later(Obstacle::NotReady { not_ready: 3, nodes: 4 }));
        assert_eq!(with(3, 30), Turn::Now);
    }
}

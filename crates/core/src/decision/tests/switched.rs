//! Each kind of notice is drained for, cordoned for or left alone by the word that its family has in the settings.

use spillway_notice::Kind;
use spillway_settings::NoticeFamily;

use super::super::{Decision, Reason, by_table, is_wanted};
use crate::decision::switch::Switch;
use crate::instance::ManagedBy;
use crate::test_support::settings;

/// The word of each family, and the kinds that take a node out.
const FAMILIES: [(NoticeFamily, &str, &[Kind]); 6] = [
    (NoticeFamily::Spot, "spot", &[Kind::Spot]),
    (NoticeFamily::Capacity, "capacity", &[Kind::CapacityReservation, Kind::CapacityBlock]),
    (NoticeFamily::Rebalance, "rebalance", &[Kind::Rebalance]),
    (NoticeFamily::Maintenance, "maintenance", &[Kind::Maintenance]),
    (NoticeFamily::StateChange, "state-change", &[Kind::Stopping, Kind::ShuttingDown]),
    (NoticeFamily::Terminate, "terminate", &[Kind::Terminate, Kind::ReturnToWarmPool, Kind::ReplaceRootVolume]),
];

fn decided(kind: Kind, owner: ManagedBy, variables: &[(&str, &str)]) -> Decision {
    by_table(kind, owner, &settings(variables))
}

fn others(word: &str) -> String {
    let others: Vec<_> = FAMILIES.iter().map(|(_, other, _)| *other).filter(|other| *other != word).collect();
    others.join(",")
}

#[test]
fn the_family_that_is_named_is_drained_for_or_cordoned_for_and_no_other() {
    for (family, word, kinds) in FAMILIES {
        let others = others(word);
        for kind in kinds {
            let of = |drain: &str, cordon: &str| {
                let variables = [("SPILLWAY_DRAIN_ON", drain), ("SPILLWAY_CORDON_ON", cordon)];
                decided(*kind, ManagedBy::SelfManaged, &variables)
            };
            assert_eq!(of(word, "off"), Decision::Drain, "{word}: {kind:?}");
            assert_eq!(of(&others, word), Decision::Cordon, "{word}: {kind:?}");
            let off = Decision::Ignore(Reason::SwitchedOff(Switch::Lists(family)));
            assert_eq!(of(&others, "off"), off, "{word}: {kind:?}");
        }
    }
}

#[test]
fn a_family_is_wanted_unless_it_is_switched_off() {
    for (_, word, kinds) in FAMILIES {
        let wanted = |drain: &str| is_wanted(kinds[0], &settings(&[("SPILLWAY_DRAIN_ON", drain)]));
        assert_eq!((wanted(word), wanted("off")), (true, false), "{word}");
    }
}

#[test]
fn a_family_that_is_switched_off_is_the_reason_whoever_manages_the_node() {
    let off = Decision::Ignore(Reason::SwitchedOff(Switch::Lists(NoticeFamily::Spot)));
    for owner in [ManagedBy::ManagedNodeGroup, ManagedBy::Karpenter, ManagedBy::AutoMode, ManagedBy::Fargate] {
        assert_eq!(decided(Kind::Spot, owner, &[("SPILLWAY_DRAIN_ON", "off")]), off, "{owner:?}");
    }
}

#[test]
fn managed_node_groups_that_are_left_alone_are_left_alone_whatever_comes() {
    let variables =
        [("SPILLWAY_MANAGED_NODE_GROUPS", "off"), ("SPILLWAY_DRAIN_ON", "spot,capacity,maintenance,state-change")];
    for kind in [Kind::Spot, Kind::CapacityBlock, Kind::Maintenance, Kind::ShuttingDown] {
        let decision = decided(kind, ManagedBy::ManagedNodeGroup, &variables);
        assert_eq!(decision, Decision::Ignore(Reason::ManagedNodeGroup), "{kind:?}");
    }
}

#[test]
fn karpenter_is_handed_what_is_drained_for_and_not_what_is_only_cordoned_for() {
    let of = |variables: &[(&str, &str)]| {
        decided(Kind::Spot, ManagedBy::Karpenter, &[&[("SPILLWAY_KARPENTER", "nodeclaim")], variables].concat())
    };
    assert_eq!(of(&[("SPILLWAY_DRAIN_ON", "spot")]), Decision::NodeClaim);
    let cordoned = of(&[("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "spot")]);
    assert_eq!(cordoned, Decision::Ignore(Reason::Karpenter));
}

//! Tests: the settings that enable each kind of notice.

use spillway_notice::Kind;
use spillway_settings::NoticeFamily;

use super::super::{Decision, Exemption, Reason, by_table, is_enabled};
use crate::decision::switch::Switch;
use crate::instance::ManagedBy;
use crate::test_support::settings;

/// Word of each family, and its kinds that drain a node.
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

fn exempt(owner: ManagedBy, exemption: Exemption) -> Decision {
    Decision::Ignore(Reason::ManagedBy { owner, exemption })
}

fn others(word: &str) -> String {
    let others: Vec<_> = FAMILIES.iter().map(|(_, other, _)| *other).filter(|other| *other != word).collect();
    others.join(",")
}

#[test]
fn only_the_named_family_is_drained_or_cordoned() {
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
        let enabled = |drain: &str| is_enabled(kinds[0], &settings(&[("SPILLWAY_DRAIN_ON", drain)]));
        assert_eq!((enabled(word), enabled("off")), (true, false), "{word}");
    }
}

#[test]
fn managed_node_groups_off_ignores_every_notice() {
    let variables =
        [("SPILLWAY_MANAGED_NODE_GROUPS", "off"), ("SPILLWAY_DRAIN_ON", "spot,capacity,maintenance,state-change")];
    for kind in [Kind::Spot, Kind::CapacityBlock, Kind::Maintenance, Kind::ShuttingDown] {
        let decision = decided(kind, ManagedBy::ManagedNodeGroup, &variables);
        assert_eq!(decision, exempt(ManagedBy::ManagedNodeGroup, Exemption::SwitchedOff), "{kind:?}");
    }
}

#[test]
fn karpenter_gets_drains_but_no_cordons() {
    let of = |variables: &[(&str, &str)]| {
        decided(Kind::Spot, ManagedBy::Karpenter, &[&[("SPILLWAY_KARPENTER", "nodeclaim")], variables].concat())
    };
    assert_eq!(of(&[("SPILLWAY_DRAIN_ON", "spot")]), Decision::NodeClaim);
    let cordoned = of(&[("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "spot")]);
    assert_eq!(cordoned, exempt(ManagedBy::Karpenter, Exemption::DrainsItself));
}

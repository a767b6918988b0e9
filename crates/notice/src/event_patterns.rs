//! Example events. The doctor checks that an EventBridge rule of the stack matches each example.

use super::kind::Kind;
use super::{capacity_block, capacity_reservation, health, launch, rebalance, spot, state_change, terminate};

/// Example event, reduced to the fields that an EventBridge rule may match.
#[derive(Debug)]
pub struct EventPattern {
    pub what: &'static str,
    pub kind: Kind,
    pub source: &'static str,
    pub detail_type: &'static str,
    pub detail: &'static [(&'static str, &'static str)],
}

const fn of_ec2(what: &'static str, kind: Kind, detail_type: &'static str) -> EventPattern {
    EventPattern { what, kind, source: "aws.ec2", detail_type, detail: &[] }
}

const fn of_state(what: &'static str, kind: Kind, state: &'static [(&'static str, &'static str)]) -> EventPattern {
    EventPattern { detail: state, ..of_ec2(what, kind, state_change::DETAIL_TYPE) }
}

const fn of_group(
    what: &'static str,
    kind: Kind,
    detail_type: &'static str,
    detail: &'static [(&'static str, &'static str)],
) -> EventPattern {
    EventPattern { what, kind, source: "aws.autoscaling", detail_type, detail }
}

pub const EVENT_PATTERNS: [EventPattern; 13] = [
    of_ec2("spot interruptions", Kind::Spot, spot::DETAIL_TYPE),
    of_ec2("interruptions of capacity reservations", Kind::CapacityReservation, capacity_reservation::DETAIL_TYPE),
    of_ec2(
        "interruptions of interruptible capacity reservations",
        Kind::CapacityReservation,
        capacity_reservation::OLDER_DETAIL_TYPE,
    ),
    of_ec2("ends of capacity blocks", Kind::CapacityBlock, capacity_block::DETAIL_TYPE),
    of_ec2("rebalance recommendations", Kind::Rebalance, rebalance::DETAIL_TYPE),
    EventPattern {
        what: "scheduled maintenance",
        kind: Kind::Maintenance,
        source: "aws.health",
        detail_type: health::DETAIL_TYPE,
        detail: &[("service", "EC2"), ("eventTypeCategory", "scheduledChange")],
    },
    of_state("instances that stop or shut down", Kind::Stopping, &[("state", "shutting-down")]),
    of_state("instances that have stopped or ended", Kind::Terminated, &[("state", "terminated")]),
    of_state("instances that run", Kind::Running, &[("state", "running")]),
    of_group(
        "terminate hooks",
        Kind::Terminate,
        terminate::DETAIL_TYPE,
        &[("LifecycleTransition", "autoscaling:EC2_INSTANCE_TERMINATING")],
    ),
    of_group(
        "launch hooks",
        Kind::Launch,
        launch::DETAIL_TYPE,
        &[("LifecycleTransition", "autoscaling:EC2_INSTANCE_LAUNCHING"), ("Origin", "EC2")],
    ),
    of_group(
        "nodes that come out of a warm pool",
        Kind::LaunchFromWarmPool,
        launch::DETAIL_TYPE,
        &[("LifecycleTransition", "autoscaling:EC2_INSTANCE_LAUNCHING"), ("Origin", "WarmPool")],
    ),
    of_group(
        "nodes that come back with another root volume",
        Kind::RootVolumeReplaced,
        launch::DETAIL_TYPE,
        &[("LifecycleTransition", "autoscaling:EC2_INSTANCE_LAUNCHING"), ("Action", "ReplaceRootVolume")],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::notice_samples;

    #[test]
    fn every_sample_of_a_notice_matches_a_pattern() {
        let mut notices = 0;
        for (name, event) in notice_samples() {
            let matches = |one: &EventPattern| {
                event["source"] == one.source
                    && event["detail-type"] == one.detail_type
                    && one.detail.iter().all(|(key, value)| event["detail"][key] == *value || *key == "state")
            };
            let is_notice = event.get("source").is_some();
            assert_eq!(EVENT_PATTERNS.iter().any(matches), is_notice, "{name}");
            notices += usize::from(is_notice);
        }
        assert!(notices > EVENT_PATTERNS.len());
    }
}

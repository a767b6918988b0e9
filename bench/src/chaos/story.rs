//! What AWS does with the instance of a node, and which notices it gives of that. Pure.

use std::time::Duration;

use super::notice::Kind;

/// A pause in which the notices of two acts may overtake each other.
const A_MOMENT: Duration = Duration::from_millis(700);

/// What becomes of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Story {
    Reclaimed,
    /// A rebalance recommendation came a moment before.
    RecommendedAndReclaimed,
    ScaledIn,
    /// It is a spot instance, and its hook waits.
    ScaledInAndReclaimed,
    CapacityTaken,
    BlockExpired,
    /// Somebody ends it.
    Ended,
    /// Somebody stops it and starts it again.
    Restarted,
    /// A rebalance recommendation that nothing follows.
    Recommended,
    /// Maintenance is called off before its drain begins.
    CalledOffEarly,
    /// Maintenance is called off after its drain.
    CalledOffLate,
    /// Maintenance that reboots it.
    Rebooted,
}

/// One thing that AWS does with the instance, or that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Recommend,
    Interrupt,
    ScaleIn,
    TakeCapacity,
    ExpireBlock,
    /// Maintenance begins after this time.
    Announce(Duration),
    CallOff,
    Reboot,
    BeginToStop,
    Stop,
    Start,
    ShutDown,
    Terminate,
    Pause(Duration),
    /// What was told so far has come to its end, as it has in the hours until something is over.
    Settle,
}

/// When maintenance starts whose drain begins at once: the lead is longer.
const NEAR: Duration = Duration::from_secs(18);
/// The same of a drain that waits for its time.
const FAR: Duration = Duration::from_secs(45);

impl Story {
    pub(super) const ALL: [Self; 12] = [
        Self::Reclaimed,
        Self::RecommendedAndReclaimed,
        Self::ScaledIn,
        Self::ScaledInAndReclaimed,
        Self::CapacityTaken,
        Self::BlockExpired,
        Self::Ended,
        Self::Restarted,
        Self::Recommended,
        Self::CalledOffEarly,
        Self::CalledOffLate,
        Self::Rebooted,
    ];

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Reclaimed => "reclaimed",
            Self::RecommendedAndReclaimed => "recommended to be replaced, then reclaimed",
            Self::ScaledIn => "scaled in",
            Self::ScaledInAndReclaimed => "scaled in, and reclaimed meanwhile",
            Self::CapacityTaken => "capacity taken back",
            Self::BlockExpired => "capacity block expired",
            Self::Ended => "ended",
            Self::Restarted => "stopped and started",
            Self::Recommended => "recommended to be replaced, and nothing followed",
            Self::CalledOffEarly => "maintenance called off before its drain",
            Self::CalledOffLate => "maintenance called off after its drain",
            Self::Rebooted => "rebooted by maintenance",
        }
    }

    pub(super) fn acts(self) -> Vec<Act> {
        match self {
            Self::Reclaimed => vec![Act::Interrupt],
            Self::RecommendedAndReclaimed => vec![Act::Recommend, Act::Pause(A_MOMENT), Act::Interrupt],
            Self::ScaledIn => vec![Act::ScaleIn],
            Self::ScaledInAndReclaimed => vec![Act::ScaleIn, Act::Pause(A_MOMENT), Act::Interrupt],
            Self::CapacityTaken => vec![Act::TakeCapacity, Act::Settle, Act::Terminate],
            Self::BlockExpired => vec![Act::ExpireBlock, Act::Settle, Act::Terminate],
            Self::Ended => vec![Act::ShutDown, Act::Settle, Act::Terminate],
            Self::Restarted => vec![Act::BeginToStop, Act::Settle, Act::Stop, Act::Pause(A_MOMENT), Act::Start],
            Self::Recommended => vec![Act::Recommend],
            Self::CalledOffEarly => vec![Act::Announce(FAR), Act::Settle, Act::CallOff],
            Self::CalledOffLate => vec![Act::Announce(NEAR), Act::Settle, Act::CallOff],
            Self::Rebooted => {
                vec![Act::Announce(NEAR), Act::Settle, Act::Reboot, Act::Pause(A_MOMENT), Act::CallOff]
            }
        }
    }

    /// Whether the instance goes on, and its node is to be in use in the end.
    pub(super) fn goes_on(self) -> bool {
        matches!(
            self,
            Self::Restarted | Self::Recommended | Self::CalledOffEarly | Self::CalledOffLate | Self::Rebooted
        )
    }

    /// Whether its pods are to leave. What is called off before its time has not begun.
    pub(super) fn drains(self) -> bool {
        self != Self::CalledOffEarly
    }

    pub(super) fn is_spot(self) -> bool {
        matches!(self, Self::Reclaimed | Self::RecommendedAndReclaimed | Self::ScaledInAndReclaimed | Self::Recommended)
    }

    pub(super) fn has_hook(self) -> bool {
        matches!(self, Self::ScaledIn | Self::ScaledInAndReclaimed)
    }

    /// The notices that AWS gives of it. An instance that has gone on is ended when it has been looked at.
    pub(super) fn notices(self) -> Vec<Kind> {
        let told = self.acts().into_iter().filter_map(Act::notice);
        let shuts_down = !self.acts().contains(&Act::ShutDown);
        told.chain(shuts_down.then_some(Kind::ShuttingDown)).collect()
    }
}

impl Act {
    /// The notice that AWS gives of it at once.
    fn notice(self) -> Option<Kind> {
        match self {
            Self::Recommend => Some(Kind::Rebalance),
            Self::Interrupt => Some(Kind::Spot),
            Self::ScaleIn => Some(Kind::Terminate),
            Self::TakeCapacity => Some(Kind::Capacity),
            Self::ExpireBlock => Some(Kind::CapacityBlock),
            Self::Announce(_) => Some(Kind::Maintenance),
            Self::CallOff => Some(Kind::MaintenanceOver),
            Self::BeginToStop => Some(Kind::Stopping),
            Self::Start => Some(Kind::Running),
            Self::ShutDown => Some(Kind::ShuttingDown),
            Self::Reboot | Self::Stop | Self::Terminate | Self::Pause(_) | Self::Settle => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_is_told_when_what_was_before_has_come_to_its_end() {
        for story in Story::ALL {
            let acts = story.acts();
            let over = acts.iter().position(|act| matches!(act, Act::CallOff | Act::Start | Act::Terminate));
            assert!(over.is_none_or(|over| acts[..over].contains(&Act::Settle)), "{story:?}");
        }
    }

    #[test]
    fn every_instance_is_told_to_shut_down_once() {
        for story in Story::ALL {
            let told = story.notices().into_iter().filter(|kind| *kind == Kind::ShuttingDown);
            assert_eq!(told.count(), 1, "{story:?}");
        }
    }
}

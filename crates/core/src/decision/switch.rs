//! Settings that switch kinds of notices on and off. Pure.

use std::fmt;

use spillway_notice::Kind;
use spillway_settings::{NoticeFamily, Policy, Settings};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// The settings `DrainOn` and `CordonOn`, which list families of notices.
    Lists(NoticeFamily),
    /// The setting `Launch`.
    Launch,
}

impl Switch {
    pub fn policy(self, settings: &Settings) -> Policy {
        match self {
            Self::Lists(family) => settings.policy(family),
            Self::Launch if settings.launch.is_some() => Policy::Drain,
            Self::Launch => Policy::Ignore,
        }
    }

    /// Returns a text that tells the user how to turn this kind of notice off.
    pub fn off(self) -> String {
        match self {
            Self::Lists(family) => {
                format!("take {} out of the parameters DrainOn and CordonOn", family.as_str())
            }
            Self::Launch => "set the parameter Launch to off".to_owned(),
        }
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lists(family) => {
                write!(f, "neither DrainOn nor CordonOn names {}", family.as_str())
            }
            Self::Launch => f.write_str("the parameter Launch is off"),
        }
    }
}

pub fn switch_of(kind: Kind, settings: &Settings) -> Switch {
    match kind {
        Kind::Spot => Switch::Lists(NoticeFamily::Spot),
        Kind::CapacityReservation | Kind::CapacityBlock => Switch::Lists(NoticeFamily::Capacity),
        Kind::Rebalance => Switch::Lists(NoticeFamily::Rebalance),
        Kind::Maintenance | Kind::MaintenanceOver => Switch::Lists(NoticeFamily::Maintenance),
        Kind::Stopping | Kind::ShuttingDown | Kind::Stopped | Kind::Terminated | Kind::Running => {
            Switch::Lists(NoticeFamily::StateChange)
        }
        Kind::Terminate | Kind::ReturnToWarmPool | Kind::ReplaceRootVolume => Switch::Lists(NoticeFamily::Terminate),
        // Either of two settings is enough: even if launch hooks are off, a node that was drained for a terminate hook is
        // uncordoned.
        kind if kind.comes_back() && settings.policy(NoticeFamily::Terminate) != Policy::Ignore => {
            Switch::Lists(NoticeFamily::Terminate)
        }
        Kind::Launch | Kind::LaunchIntoWarmPool | Kind::LaunchFromWarmPool | Kind::RootVolumeReplaced => Switch::Launch,
    }
}

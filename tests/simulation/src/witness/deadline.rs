//! Deadline of a notice, computed apart from the product.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::plan::{App, Plan};

/// Time between the end of a grace period and the end of the instance.
const MARGIN: SignedDuration = SignedDuration::from_secs(2);
/// Time between the first eviction of a pod and its deletion.
const TIME_FOR_A_BUDGET: SignedDuration = SignedDuration::from_secs(20);
/// Time for which a hook waits for volumes.
pub(super) const VOLUME_WAIT: SignedDuration = SignedDuration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline {
    /// Time of the notice; for maintenance, the earliest begin of its drain.
    pub(super) sent: Timestamp,
    pub(super) termination: Termination,
    /// Wait of a hook for the volumes of its node.
    pub(super) detaching: SignedDuration,
}

/// End of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Termination {
    At(Timestamp),
    /// Earlier if the hook is completed.
    AtTheLatest(Timestamp),
    SoonAtUnknownTime {
        /// End of the respect for budgets.
        respected_until: Timestamp,
    },
    MayStay,
}

impl Deadline {
    /// Deadline for an invocation with this begin.
    pub(super) fn of(notice: &Value, began: Timestamp, plan: &Plan) -> Option<Self> {
        let mut sent: Timestamp = notice["time"].as_str()?.parse().ok()?;
        let two_minutes = sent + SignedDuration::from_secs(120);
        let termination = match notice["detail-type"].as_str()? {
            "EC2 Spot Instance Interruption Warning" => {
                let is_over = two_minutes + SignedDuration::from_millis(plan.skew_ms) < began;
                if is_over {
                    Termination::SoonAtUnknownTime { respected_until: two_minutes }
                } else {
                    Termination::At(two_minutes)
                }
            }
            "EC2 Instance-terminate Lifecycle Action" => Termination::AtTheLatest(sent + longest_wait(plan)),
            "EC2 Instance State-change Notification" => Termination::SoonAtUnknownTime { respected_until: two_minutes },
            "AWS Health Event" if notice["detail"]["statusCode"] == "upcoming" => {
                let starts = notice["detail"]["startTime"].as_str()?;
                let starts = jiff::fmt::rfc2822::parse(starts).ok()?.timestamp();
                // An invocation sleeps for a wait of less than two minutes.
                sent = sent.max(starts - seconds(plan, "SPILLWAY_MAINTENANCE_LEAD_S"));
                if starts <= began { Termination::MayStay } else { Termination::At(starts) }
            }
            _ => Termination::MayStay,
        };
        let detaching = match termination {
            Termination::AtTheLatest(_) => VOLUME_WAIT,
            _ => SignedDuration::ZERO,
        };
        Some(Self { sent, termination, detaching })
    }

    /// Latest end of the instance.
    pub(super) fn known(&self) -> Option<Timestamp> {
        match self.termination {
            Termination::At(goes) | Termination::AtTheLatest(goes) => Some(goes),
            Termination::SoonAtUnknownTime { .. } | Termination::MayStay => None,
        }
    }

    /// Time for a pod that is requested to leave now; `None` if its grace may not be clamped.
    pub(super) fn time_left(&self, now: Timestamp) -> Option<SignedDuration> {
        let Termination::At(at) = self.termination else { return None };
        Some(at.duration_since(now) - MARGIN)
    }

    /// Earliest deletion of a blocked pod: its last safe moment, but not before half of the window.
    pub(super) fn forced_from(&self, app: &App) -> Option<Timestamp> {
        if let Termination::SoonAtUnknownTime { respected_until } = self.termination {
            return Some(respected_until);
        }
        let goes = self.known()?;
        let half = self.sent + goes.duration_since(self.sent) / 2;
        Some(self.last_safe(goes, app).max(half))
    }

    /// Earliest eviction of a last pod beside others, if the end of the instance is known.
    pub(super) fn last_from(&self, app: &App) -> Option<Timestamp> {
        Some(self.last_safe(self.known()?, app).min(self.forced_from(app)? - TIME_FOR_A_BUDGET))
    }

    /// Latest request that leaves a pod its whole grace, and its volume the time to be detached.
    fn last_safe(&self, goes: Timestamp, app: &App) -> Timestamp {
        let detaching = if app.has_volume { self.detaching } else { SignedDuration::ZERO };
        goes - SignedDuration::from_secs(i64::try_from(app.grace_s).unwrap_or(i64::MAX)) - detaching - MARGIN
    }
}

/// Longest wait of a hook.
pub(super) fn longest_wait(plan: &Plan) -> SignedDuration {
    let in_all = (plan.hook_timeout * 100).saturating_sub(Duration::from_secs(5));
    SignedDuration::try_from(in_all).unwrap_or(SignedDuration::MAX).min(seconds(plan, "SPILLWAY_HOOK_MAX_WAIT_S"))
}

/// A setting in seconds; an hour by default.
pub(super) fn seconds(plan: &Plan, setting: &str) -> SignedDuration {
    let seconds = plan.setting(setting).and_then(|value| value.parse().ok());
    SignedDuration::from_secs(seconds.unwrap_or(3600))
}

//! When an instance goes by its notice, read and calculated apart from the product: what it does is held against this.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::plan::{App, Plan};

/// What is kept before an instance goes.
const MARGIN: SignedDuration = SignedDuration::from_secs(2);

/// How long before it may be forced a pod is asked.
const TIME_FOR_A_BUDGET: SignedDuration = SignedDuration::from_secs(20);

/// A notice's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline {
    /// When it was sent; the earliest begin of a drain for maintenance.
    pub(super) sent: Timestamp,
    pub(super) termination: Termination,
    /// How long a hook is held until the volumes of its node are detached.
    pub(super) detaching: SignedDuration,
}

/// When an instance goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Termination {
    At(Timestamp),
    /// Or when its hook is completed.
    AtTheLatest(Timestamp),
    Soon {
        /// Until when what blocks a pod is respected.
        respected_until: Timestamp,
    },
    Unknown,
}

impl Deadline {
    /// By a notice, for an invocation that began then.
    pub(super) fn of(notice: &Value, began: Timestamp, plan: &Plan) -> Option<Self> {
        let mut sent: Timestamp = notice["time"].as_str()?.parse().ok()?;
        let time = sent;
        let after = |seconds| time + SignedDuration::from_secs(seconds);
        let termination = match notice["detail-type"].as_str()? {
            "EC2 Spot Instance Interruption Warning" => {
                let (goes, skew) = (after(120), SignedDuration::from_millis(plan.skew_ms));
                if goes + skew < began { Termination::Soon { respected_until: goes } } else { Termination::At(goes) }
            }
            "EC2 Instance-terminate Lifecycle Action" => Termination::AtTheLatest(sent + longest_wait(plan)),
            "EC2 Instance State-change Notification" => Termination::Soon { respected_until: after(120) },
            "AWS Health Event" if notice["detail"]["statusCode"] == "upcoming" => {
                let starts = notice["detail"]["startTime"].as_str()?;
                let starts = jiff::fmt::rfc2822::parse(starts).ok()?.timestamp();
                let lead = plan.setting("SPILLWAY_MAINTENANCE_LEAD_S").and_then(|lead| lead.parse().ok());
                // A wait of less than two minutes is slept within the invocation.
                sent = sent.max(starts - SignedDuration::from_secs(lead.unwrap_or(3_600)));
                if starts <= began { Termination::Unknown } else { Termination::At(starts) }
            }
            _ => Termination::Unknown,
        };
        let detaching = match termination {
            Termination::AtTheLatest(_) => VOLUME_WAIT,
            _ => SignedDuration::ZERO,
        };
        Some(Self { sent, termination, detaching })
    }

    /// Whether it is known when the instance goes.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.termination, Termination::At(_) | Termination::AtTheLatest(_))
    }

    /// How long a pod has that is requested to leave now, if its grace may be clamped at all.
    pub(super) fn time_left(&self, now: Timestamp) -> Option<SignedDuration> {
        let Termination::At(at) = self.termination else { return None };
        Some(at.duration_since(now) - MARGIN)
    }

    /// From when on a pod that something blocks may be deleted: its last safe moment, but not before half of the window.
    pub(super) fn forced_from(&self, app: &App) -> Option<Timestamp> {
        match self.termination {
            Termination::At(goes) | Termination::AtTheLatest(goes) => {
                let half = self.sent + goes.duration_since(self.sent) / 2;
                Some(self.last_safe(goes, app).max(half))
            }
            Termination::Soon { respected_until } => Some(respected_until),
            Termination::Unknown => None,
        }
    }

    /// From when on a pod that goes last may be asked although others are there, where the instance goes at a known time.
    pub(super) fn last_from(&self, app: &App) -> Option<Timestamp> {
        let (Termination::At(goes) | Termination::AtTheLatest(goes)) = self.termination else { return None };
        Some(self.last_safe(goes, app).min(self.forced_from(app)? - TIME_FOR_A_BUDGET))
    }

    /// Requested to leave then, a pod has its whole grace, and its volume the time to be detached.
    fn last_safe(&self, goes: Timestamp, app: &App) -> Timestamp {
        let detaching = if app.has_volume { self.detaching } else { SignedDuration::ZERO };
        goes - SignedDuration::from_secs(i64::try_from(app.grace_s).unwrap_or(i64::MAX)) - detaching - MARGIN
    }
}

/// How long a hook waits for volumes.
pub(super) const VOLUME_WAIT: SignedDuration = SignedDuration::from_secs(60);

/// How long a hook may be held.
pub(super) fn longest_wait(plan: &Plan) -> SignedDuration {
    let in_all = (plan.hook_timeout * 100).saturating_sub(Duration::from_secs(5));
    SignedDuration::try_from(in_all).unwrap_or(SignedDuration::MAX).min(seconds(plan, "SPILLWAY_HOOK_MAX_WAIT_S"))
}

/// What a setting in seconds is.
pub(super) fn seconds(plan: &Plan, setting: &str) -> SignedDuration {
    let seconds = plan.setting(setting).and_then(|value| value.parse().ok());
    SignedDuration::from_secs(seconds.unwrap_or(3600))
}

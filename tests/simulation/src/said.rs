//! What a notice says of its instance's time, read and reckoned apart from the product: what it does is held against this.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::draw::Plan;

/// What is kept before an instance goes.
const MARGIN: SignedDuration = SignedDuration::from_secs(2);

/// What a notice says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) at: Timestamp,
    pub(crate) goes: Goes,
}

/// When the instance goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goes {
    At(Timestamp),
    /// Or when its hook is completed.
    AtTheLatest(Timestamp),
    /// What blocks a pod is respected until then.
    Soon(Timestamp),
    Perhaps,
}

impl Said {
    /// What an event says, or the notice that it is about, to an invocation that began then.
    pub(crate) fn by(event: &Value, began: Timestamp, plan: &Plan) -> Option<Self> {
        if event["source"] == "spillway" {
            return Self::by(&event["detail"]["notice"], began, plan);
        }
        let at: Timestamp = event["time"].as_str()?.parse().ok()?;
        let after = |seconds| at + SignedDuration::from_secs(seconds);
        let goes = match event["detail-type"].as_str()? {
            "EC2 Spot Instance Interruption Warning" => Goes::At(after(120)),
            "EC2 Instance-terminate Lifecycle Action" => Goes::AtTheLatest(at + Self::longest_wait(plan)),
            "EC2 Instance State-change Notification" => Goes::Soon(after(120)),
            "AWS Health Event" if event["detail"]["statusCode"] == "upcoming" => {
                let starts = event["detail"]["startTime"].as_str()?;
                let starts = jiff::fmt::rfc2822::parse(starts).ok()?.timestamp();
                if starts <= began { Goes::Perhaps } else { Goes::At(starts) }
            }
            _ => Goes::Perhaps,
        };
        Some(Self { at, goes })
    }

    /// How long a hook may be held.
    pub(crate) fn longest_wait(plan: &Plan) -> SignedDuration {
        let in_all = (plan.hook_timeout * 100).saturating_sub(std::time::Duration::from_secs(5));
        let wait = plan.setting("SPILLWAY_HOOK_MAX_WAIT_S").and_then(|value| value.parse().ok()).unwrap_or(3600);
        SignedDuration::try_from(in_all).unwrap_or(SignedDuration::MAX).min(SignedDuration::from_secs(wait))
    }

    /// How long a pod has that is requested to leave now, if its grace may be clamped at all.
    pub(crate) fn room(&self, now: Timestamp) -> Option<SignedDuration> {
        let Goes::At(at) = self.goes else { return None };
        Some(at.duration_since(now) - MARGIN)
    }

    /// From when on a pod that something blocks may be deleted: its last safe moment, but not before half of the window.
    pub(crate) fn forced_from(&self, grace_s: u64) -> Option<Timestamp> {
        match self.goes {
            Goes::At(goes) | Goes::AtTheLatest(goes) => {
                let grace = SignedDuration::from_secs(i64::try_from(grace_s).unwrap_or(i64::MAX));
                let half = self.at + goes.duration_since(self.at) / 2;
                Some((goes - grace - MARGIN).max(half))
            }
            Goes::Soon(at) => Some(at),
            Goes::Perhaps => None,
        }
    }
}

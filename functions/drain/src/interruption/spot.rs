//! `EC2 Spot Instance Interruption Warning`: the instance goes two minutes after the notice.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::envelope::{self, Envelope};
use super::{Deadline, Kind, Matter, NoticeError, Said, Which};

pub(super) const DETAIL_TYPE: &str = "EC2 Spot Instance Interruption Warning";

/// EC2's promise (EC2 user guide, "Spot Instance interruption notices"). Hibernation begins at
/// once, but its pods are frozen then, not ended, so the same window does no harm.
pub(crate) const NOTICE: SignedDuration = SignedDuration::from_secs(120);

#[derive(Deserialize)]
struct Detail {
    #[serde(rename = "instance-id")]
    instance: String,
}

pub(super) fn read(envelope: &Envelope) -> Result<Said, NoticeError> {
    let detail: Detail = envelope.detail()?;
    let deadline = Deadline::Hard(envelope.time.saturating_add(NOTICE).unwrap_or(Timestamp::MAX));
    let instance = envelope::instance_id("detail.instance-id", &detail.instance)?;
    Ok(Said::Of(Which::one(instance), Matter::of(Kind::Spot, deadline)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::super::tests::{home, sample};
    use super::super::{InstanceId, Interruption, Notice, read};
    use super::*;

    #[test]
    fn the_instance_goes_two_minutes_after_the_notice_not_after_its_arrival() {
        let Notice::Interruption { interruption, .. } = read(sample("spot-interruption"), &home()).unwrap() else {
            panic!("not read")
        };
        assert_eq!(
            interruption,
            Interruption {
                event_id: "12345678-1234-1234-1234-123456789012".to_owned(),
                kind: Kind::Spot,
                instance: InstanceId::parse("i-1234567890abcdef0").unwrap(),
                time: "2026-11-21T03:12:00Z".parse().unwrap(),
                deadline: Deadline::Hard("2026-11-21T03:14:00Z".parse().unwrap()),
                hook: None,
                maintenance: None,
            }
        );
    }

    #[test]
    fn a_time_at_the_end_of_the_calendar_is_no_panic() {
        let mut event = sample("spot-interruption");
        event["time"] = "9999-12-30T21:59:59Z".into();
        let Notice::Interruption { interruption, .. } = read(event, &home()).unwrap() else { panic!("not read") };
        assert!(matches!(interruption.deadline, Deadline::Hard(at) if at >= interruption.time));
    }
}

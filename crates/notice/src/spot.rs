//! `EC2 Spot Instance Interruption Warning`: EC2 interrupts a spot instance two minutes after the notice.

use jiff::SignedDuration;
use serde::Deserialize;

use super::envelope::Envelope;
use super::{Concerns, Deadline, InstanceId, Kind, NoticeError, Parsed, ParsedNotice};

pub(super) const DETAIL_TYPE: &str = "EC2 Spot Instance Interruption Warning";

/// Time from the notice to the interruption (EC2 user guide, "Spot Instance interruption notices").
pub const NOTICE: SignedDuration = SignedDuration::from_secs(120);

#[derive(Deserialize)]
struct SpotDetail {
    #[serde(rename = "instance-id")]
    instance: InstanceId,
}

pub(super) fn read(envelope: &Envelope) -> Result<Parsed, NoticeError> {
    let SpotDetail { instance } = envelope.detail()?;
    // Hibernation begins at once, but only freezes the pods.
    Ok(Parsed::Of(Concerns::One(instance), ParsedNotice::of(Kind::Spot, Deadline::Hard(envelope.after(NOTICE)))))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{notice, sample};

    #[test]
    fn every_instance_action_has_two_minutes() {
        let terminated = notice(sample("spot-interruption"));
        for action in ["stop", "hibernate", "evaporate"] {
            let mut event = sample("spot-interruption");
            event["detail"]["instance-action"] = action.into();
            assert_eq!(notice(event), terminated, "{action}");
        }
    }
}

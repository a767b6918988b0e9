//! `EC2 Capacity Reservation Instance Interruption Warning`: EC2 takes back an instance of an interruptible
//! capacity reservation, or of a capacity block.

use jiff::SignedDuration;
use serde::Deserialize;

use super::date::Date;
use super::envelope::Envelope;
use super::{Concerns, Deadline, InstanceId, Kind, NoticeError, Parsed, ParsedNotice};

pub(super) const DETAIL_TYPE: &str = "EC2 Capacity Reservation Instance Interruption Warning";
/// The detail-type that an older edition of the EC2 user guide has.
pub(super) const OLDER_DETAIL_TYPE: &str = "EC2 Interruptible Capacity Reservation Instance Interruption Warning";

/// EC2's promise (EC2 user guide, "Monitor interruptible Capacity Reservations").
pub const NOTICE: SignedDuration = SignedDuration::from_secs(120);

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CapacityReservationDetail {
    #[serde(rename = "instance-id")]
    instance: InstanceId,
    instance_termination_time: Option<Date>,
}

pub(super) fn read(envelope: &Envelope) -> Result<Parsed, NoticeError> {
    let CapacityReservationDetail { instance, instance_termination_time } = envelope.detail()?;
    let goes = instance_termination_time.map_or_else(|| envelope.after(NOTICE), |Date(at)| at);
    Ok(Parsed::Of(Concerns::One(instance), ParsedNotice::of(Kind::CapacityReservation, Deadline::Hard(goes))))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::tests::{notice, refused, sample};
    use super::*;

    fn deadline(event: Value) -> Deadline {
        let read = notice(event);
        assert_eq!((read.kind, read.instance.as_str()), (Kind::CapacityReservation, "i-1234567890abcdef0"));
        read.deadline
    }

    #[test]
    fn each_form_that_aws_documents_says_when_the_instance_goes() {
        let at = |time: &str| Deadline::Hard(time.parse().unwrap());
        assert_eq!(deadline(sample("capacity-reservation-interruption")), at("2026-11-21T03:14:05Z"));
        // An older edition's, which names no time.
        assert_eq!(deadline(sample("interruptible-capacity-reservation-interruption")), at("2026-11-21T03:14:00Z"));
        // A capacity block's, for which it is too late.
        assert_eq!(deadline(sample("capacity-block-interruption")), at("2026-11-21T03:12:00Z"));
    }

    #[test]
    fn a_time_that_is_none_is_named() {
        let mut event = sample("capacity-reservation-interruption");
        event["detail"]["instance-termination-time"] = "soon".into();
        let why = "cannot read the notice: at detail.instance-termination-time: \"soon\" is no date";
        assert_eq!(refused(event), why);
    }
}

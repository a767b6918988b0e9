//! `EC2 Capacity Reservation Instance Interruption Warning`: EC2 takes back an instance of an interruptible
//! capacity reservation, or of a capacity block.

use jiff::SignedDuration;
use serde::Deserialize;

use super::date::Date;
use super::envelope::Envelope;
use super::{Concerns, Deadline, InstanceId, Kind, NoticeError, Parsed, ParsedNotice};

pub(super) const DETAIL_TYPE: &str = "EC2 Capacity Reservation Instance Interruption Warning";
/// Detail-type in an older edition of the EC2 user guide.
pub(super) const OLDER_DETAIL_TYPE: &str = "EC2 Interruptible Capacity Reservation Instance Interruption Warning";

/// Time from the notice to the interruption (EC2 user guide, "Monitor interruptible Capacity Reservations").
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
    use super::super::tests::{notice, sample};
    use super::*;

    #[test]
    fn each_documented_form_has_its_deadline() {
        for (name, deadline) in [
            ("capacity-reservation-interruption", "2026-11-21T03:14:05Z"),
            // The form of an older edition, without a time.
            ("interruptible-capacity-reservation-interruption", "2026-11-21T03:14:00Z"),
            // The form of a capacity block, whose deadline has passed.
            ("capacity-block-interruption", "2026-11-21T03:12:00Z"),
        ] {
            let read = notice(sample(name));
            assert_eq!(
                (read.kind, read.instance.as_str()),
                (Kind::CapacityReservation, "i-1234567890abcdef0"),
                "{name}"
            );
            assert_eq!(read.deadline, Deadline::Hard(deadline.parse().unwrap()), "{name}");
        }
    }
}

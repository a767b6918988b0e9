//! `EC2 Capacity Reservation Instance Interruption Warning`: EC2 reclaims an instance of an interruptible capacity reservation or
//! of a capacity block.

use jiff::SignedDuration;
use serde::Deserialize;

use super::date::Date;
use super::envelope::Envelope;
use super::{Concerns, Deadline, InstanceId, Kind, NoticeError, Parsed, ParsedNotice};

pub(super) const DETAIL_TYPE: &str = "EC2 Capacity Reservation Instance Interruption Warning";
/// `detail-type` in an older edition of the EC2 user guide.
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

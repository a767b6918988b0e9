//! `Capacity Block Reservation Expiration Warning`: a capacity block ends. The event names the block, but no instance.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::date::Date;
use super::envelope::{self, Envelope, quoted};
use super::{Concerns, Deadline, Instances, Kind, NoticeError, Parsed, ParsedNotice};

pub(super) const DETAIL_TYPE: &str = "Capacity Block Reservation Expiration Warning";

/// EC2 begins to terminate instances 30 minutes before a capacity block ends (EC2 user guide, "Monitor Capacity Blocks using
/// EventBridge").
const INSTANCES_GO_BEFORE: SignedDuration = SignedDuration::from_mins(30);

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CapacityBlockDetail {
    capacity_reservation_id: String,
    end_date: Date,
}

pub(super) fn read(envelope: &Envelope) -> Result<Parsed, NoticeError> {
    let CapacityBlockDetail { capacity_reservation_id: reservation, end_date: Date(end) } = envelope.detail()?;
    if !is_reservation(&reservation) {
        let why = format!("{} is no capacity reservation's id", quoted(&reservation));
        return Err(envelope::unreadable("detail.capacity-reservation-id", why));
    }
    let go = end.saturating_sub(INSTANCES_GO_BEFORE).unwrap_or(Timestamp::MIN);
    let which = Concerns::Several(Instances::OfReservation(reservation));
    Ok(Parsed::Of(which, ParsedNotice::of(Kind::CapacityBlock, Deadline::Hard(go))))
}

/// Returns `true` for `cr-` followed by letters and digits. In an EC2 filter, `*` would match every reservation.
fn is_reservation(id: &str) -> bool {
    id.strip_prefix("cr-").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{continuation, home, notice, refused, sample};
    use super::super::{Incoming, read};
    use super::*;

    #[test]
    fn every_instance_goes_thirty_minutes_before_the_end() {
        let event = sample("capacity-block-expiry");
        let Incoming::Several(several) = read(event, &home()).unwrap() else { panic!("not read") };
        assert_eq!(several.kind, Kind::CapacityBlock);
        assert_eq!(several.instances, Instances::OfReservation("cr-1234567890abcdef0".to_owned()));
        let read = notice(continuation(&several.history.for_instance("i-0123456789abcdef0")));
        assert_eq!(read.instance.as_str(), "i-0123456789abcdef0");
        assert_eq!(read.deadline, Deadline::Hard("2026-11-21T03:22:00Z".parse().unwrap()));
    }

    #[test]
    fn malformed_reservation_is_refused() {
        for id in ["", "*", "cr-", "cr-*", "cr-1234567890abcdef0,cr-2"] {
            let mut event = sample("capacity-block-expiry");
            event["detail"]["capacity-reservation-id"] = id.into();
            let place = "cannot read the notice: at detail.capacity-reservation-id";
            assert_eq!(refused(event), format!("{place}: {id:?} is no capacity reservation's id"));
        }
    }
}

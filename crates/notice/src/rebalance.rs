//! `EC2 Instance Rebalance Recommendation`: a spot instance has an elevated risk of interruption.

use serde::Deserialize;

use super::envelope::Envelope;
use super::{Concerns, Deadline, InstanceId, Kind, NoticeError, Parsed, ParsedNotice};

pub(super) const DETAIL_TYPE: &str = "EC2 Instance Rebalance Recommendation";

#[derive(Deserialize)]
struct RebalanceDetail {
    #[serde(rename = "instance-id")]
    instance: InstanceId,
}

pub(super) fn read(envelope: &Envelope) -> Result<Parsed, NoticeError> {
    let RebalanceDetail { instance } = envelope.detail()?;
    Ok(Parsed::Of(Concerns::One(instance), ParsedNotice::of(Kind::Rebalance, Deadline::Open)))
}

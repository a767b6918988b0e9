//! `EC2 Instance-launch Lifecycle Action`: an Auto Scaling group has launched an instance, has moved one into or out of its warm
//! pool, or has replaced a root volume. The group waits until its hook is completed.

use super::envelope::Envelope;
use super::lifecycle_action::{LifecycleDetail, REPLACES_ROOT_VOLUME};
use super::{Kind, NoticeError, Parsed};

pub(super) const DETAIL_TYPE: &str = "EC2 Instance-launch Lifecycle Action";

pub(super) fn read(envelope: &Envelope) -> Result<Parsed, NoticeError> {
    let action: LifecycleDetail = envelope.detail()?;
    let kind = match (action.action.as_deref(), action.origin.as_deref(), action.destination.as_deref()) {
        (Some(REPLACES_ROOT_VOLUME), ..) => Kind::RootVolumeReplaced,
        (Some(_), ..) => return Ok(action.unknown()),
        (None, Some("WarmPool"), _) => Kind::LaunchFromWarmPool,
        (None, _, Some("WarmPool")) => Kind::LaunchIntoWarmPool,
        (None, ..) => Kind::Launch,
    };
    Ok(action.waits_for(kind))
}

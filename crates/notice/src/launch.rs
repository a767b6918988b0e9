//! `EC2 Instance-launch Lifecycle Action`: a hook waits after a launch, a move out of a warm pool, or a root volume replacement.

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

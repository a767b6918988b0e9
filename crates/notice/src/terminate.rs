//! `EC2 Instance-terminate Lifecycle Action`: a hook delays a termination, a return to a warm pool, or a root volume replacement.

use super::envelope::Envelope;
use super::lifecycle_action::{LifecycleDetail, REPLACES_ROOT_VOLUME};
use super::{Kind, NoticeError, Parsed};

pub(super) const DETAIL_TYPE: &str = "EC2 Instance-terminate Lifecycle Action";

pub(super) fn read(envelope: &Envelope) -> Result<Parsed, NoticeError> {
    let action: LifecycleDetail = envelope.detail()?;
    let kind = match (action.action.as_deref(), action.destination.as_deref()) {
        (Some(REPLACES_ROOT_VOLUME), _) => Kind::ReplaceRootVolume,
        (None, Some("EC2") | None) => Kind::Terminate,
        (None, Some("WarmPool")) => Kind::ReturnToWarmPool,
        _ => return Ok(action.unknown()),
    };
    Ok(action.waits_for(kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{home, notice, sample};
    use super::super::{Incoming, read};
    use super::*;

    #[test]
    fn optional_fields_may_be_missing() {
        let mut event = sample("terminate-lifecycle-action");
        for field in ["LifecycleActionToken", "NotificationMetadata", "Origin", "Destination"] {
            event["detail"].as_object_mut().unwrap().remove(field);
        }
        let read = notice(event);
        assert_eq!((read.kind, read.hook.unwrap().token), (Kind::Terminate, None));
    }

    #[test]
    fn unknown_action_or_destination_is_ignored_with_a_warning() {
        for (field, named) in [
            ("Action", "its action is \"Moon\", its destination \"EC2\""),
            ("Destination", "its action is none, its destination \"Moon\""),
        ] {
            let mut event = sample("terminate-lifecycle-action");
            event["detail"][field] = json!("Moon");
            let Incoming::Unhandled { why, is_unknown, .. } = read(event, &home()).unwrap() else { panic!("handled") };
            let expected = format!("Spillway does not know what Auto Scaling group \"my-asg\" does: {named}");
            assert_eq!((why, is_unknown), (expected, true));
        }
    }
}

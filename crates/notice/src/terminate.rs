//! `EC2 Instance-terminate Lifecycle Action`: an Auto Scaling group takes an instance out of service, to end it,
//! to put it back into its warm pool or to give it a new root volume; and waits for its hook to be completed.

use super::envelope::{Envelope, quoted, unreadable};
use super::lifecycle_action::{LifecycleDetail, Special};
use super::{Kind, NoticeError, Parsed};

pub(super) const DETAIL_TYPE: &str = "EC2 Instance-terminate Lifecycle Action";

pub(super) fn read(envelope: &Envelope) -> Result<Parsed, NoticeError> {
    let action: LifecycleDetail = envelope.detail()?;
    let kind = match (action.special()?, action.destination.as_deref()) {
        (Some(Special::ReplaceRootVolume), _) => Kind::ReplaceRootVolume,
        (None, Some("EC2") | None) => Kind::Terminate,
        (None, Some("WarmPool")) => Kind::ReturnToWarmPool,
        (None, Some(other)) => {
            let why = format!("Spillway does not know {} without an Action", quoted(other));
            return Err(unreadable("detail.Destination", why));
        }
    };
    Ok(action.waits_for(kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{notice, refused, sample};
    use super::super::{Deadline, Hook, InstanceId, Notice};
    use super::*;

    #[test]
    fn the_hook_to_complete_comes_with_the_notice() {
        assert_eq!(
            notice(sample("terminate-lifecycle-action")),
            Notice {
                event_id: "87654321-1234-1234-1234-123456789012".to_owned(),
                kind: Kind::Terminate,
                instance: InstanceId::parse("i-1234567890abcdef0").unwrap(),
                zone: None,
                time: "2026-11-21T03:12:00Z".parse().unwrap(),
                deadline: Deadline::HeldByHook,
                hook: Some(Hook {
                    group: "my-asg".to_owned(),
                    name: "my-lifecycle-hook".to_owned(),
                    token: Some("87654321-4321-4321-4321-210987654321".to_owned()),
                }),
                maintenance: None,
            }
        );
    }

    #[test]
    fn a_group_may_keep_the_instance() {
        for (name, kind) in [
            ("return-to-warm-pool", Kind::ReturnToWarmPool),
            ("replace-root-volume", Kind::ReplaceRootVolume),
            ("terminate-from-warm-pool", Kind::Terminate),
        ] {
            let read = notice(sample(name));
            assert_eq!((read.kind, read.deadline), (kind, Deadline::HeldByHook), "{name}");
            assert_eq!(read.hook.unwrap().name, "my-lifecycle-hook");
        }
    }

    #[test]
    fn what_is_documented_as_optional_may_be_missing() {
        let mut event = sample("terminate-lifecycle-action");
        for field in ["LifecycleActionToken", "NotificationMetadata", "Origin", "Destination"] {
            event["detail"].as_object_mut().unwrap().remove(field);
        }
        let read = notice(event);
        assert_eq!((read.kind, read.hook.unwrap().token), (Kind::Terminate, None));
    }

    #[test]
    fn what_the_group_does_by_a_name_that_nobody_knows_is_somebodys_to_look_at() {
        // Hibernation is what a warm pool may do with an instance.
        for (field, name, more) in [
            ("Action", "Moon", ""),
            ("Destination", "Moon", " without an Action"),
            ("Destination", "Hibernation", " without an Action"),
        ] {
            let mut event = sample("terminate-lifecycle-action");
            event["detail"][field] = json!(name);
            let told = format!("cannot read the notice: at detail.{field}: Spillway does not know \"{name}\"{more}");
            assert_eq!(refused(event), told);
        }
    }

    #[test]
    fn a_notice_without_its_hook_cannot_be_read() {
        let mut event = sample("terminate-lifecycle-action");
        event["detail"]["LifecycleHookName"] = json!(null);
        let why = "cannot read the notice: at detail.LifecycleHookName: invalid type: null, expected a string";
        assert_eq!(refused(event), why);
    }
}

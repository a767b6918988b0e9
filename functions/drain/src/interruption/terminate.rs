//! `EC2 Instance-terminate Lifecycle Action`: an Auto Scaling group ends an instance and waits
//! for its hook to be completed.

use serde::Deserialize;

use super::envelope::{self, Envelope};
use super::{Deadline, Hook, Kind, Matter, NoticeError, Said, Which};

pub(super) const DETAIL_TYPE: &str = "EC2 Instance-terminate Lifecycle Action";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Detail {
    #[serde(rename = "EC2InstanceId")]
    instance: String,
    auto_scaling_group_name: String,
    lifecycle_hook_name: String,
    #[serde(default)]
    lifecycle_action_token: Option<String>,
}

pub(super) fn read(envelope: &Envelope) -> Result<Said, NoticeError> {
    let detail: Detail = envelope.detail()?;
    let instance = envelope::instance_id("detail.EC2InstanceId", &detail.instance)?;
    let hook = Hook {
        group: detail.auto_scaling_group_name,
        name: detail.lifecycle_hook_name,
        token: detail.lifecycle_action_token,
    };
    let matter = Matter { hook: Some(hook), ..Matter::of(Kind::Terminate, Deadline::HeldByHook) };
    Ok(Said::Of(Which::one(instance), matter))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::super::tests::{home, sample};
    use super::super::{InstanceId, Interruption, Notice, read};
    use super::*;

    #[test]
    fn the_hook_to_complete_comes_with_the_notice() {
        let Notice::Interruption { interruption, .. } = read(sample("terminate-lifecycle-action"), &home()).unwrap()
        else {
            panic!("not read")
        };
        assert_eq!(
            interruption,
            Interruption {
                event_id: "87654321-1234-1234-1234-123456789012".to_owned(),
                kind: Kind::Terminate,
                instance: InstanceId::parse("i-1234567890abcdef0").unwrap(),
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
    fn a_notice_without_a_token_names_its_action_by_the_instance() {
        let mut event = sample("terminate-lifecycle-action");
        event["detail"].as_object_mut().unwrap().remove("LifecycleActionToken");
        let Notice::Interruption { interruption, .. } = read(event, &home()).unwrap() else { panic!("not read") };
        assert_eq!(interruption.hook.unwrap().token, None);
    }

    #[test]
    fn a_notice_without_its_hook_cannot_be_read() {
        let mut event = sample("terminate-lifecycle-action");
        event["detail"]["LifecycleHookName"] = json!(null);
        let error = read(event, &home()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read the notice: at detail.LifecycleHookName: invalid type: null, expected a string"
        );
    }
}

//! What Auto Scaling's two lifecycle notices have in common: the instance, and the hook that waits for an answer.

use serde::Deserialize;

use super::envelope::{NoticeError, quoted, unreadable};
use super::{Concerns, Deadline, Hook, InstanceId, Kind, Parsed, ParsedNotice};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct LifecycleDetail {
    #[serde(rename = "EC2InstanceId")]
    instance: InstanceId,
    #[serde(rename = "AutoScalingGroupName")]
    group: String,
    #[serde(rename = "LifecycleHookName")]
    name: String,
    #[serde(rename = "LifecycleActionToken")]
    token: Option<String>,
    pub(super) origin: Option<String>,
    pub(super) destination: Option<String>,
    action: Option<String>,
}

/// What the group does, if that is not plainly to launch or to terminate an instance.
pub(super) enum Special {
    ReplaceRootVolume,
}

impl LifecycleDetail {
    /// One that has a name that we do not know may do anything to the instance: somebody has to look.
    pub(super) fn special(&self) -> Result<Option<Special>, NoticeError> {
        match self.action.as_deref() {
            None => Ok(None),
            Some("ReplaceRootVolume") => Ok(Some(Special::ReplaceRootVolume)),
            Some(other) => Err(unreadable("detail.Action", format!("Spillway does not know {}", quoted(other)))),
        }
    }

    /// The notice, whose hook waits for an answer.
    pub(super) fn waits_for(self, kind: Kind) -> Parsed {
        let hook = Hook { group: self.group, name: self.name, token: self.token };
        let said = ParsedNotice { hook: Some(hook), ..ParsedNotice::of(kind, Deadline::HeldByHook) };
        Parsed::Of(Concerns::One(self.instance), said)
    }
}

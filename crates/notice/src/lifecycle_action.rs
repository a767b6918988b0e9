//! Fields that the launch and terminate lifecycle actions of Auto Scaling have in common.

use serde::Deserialize;

use super::envelope::quoted;
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
    pub(super) action: Option<String>,
}

pub(super) const REPLACES_ROOT_VOLUME: &str = "ReplaceRootVolume";

impl LifecycleDetail {
    /// Returns `Parsed::Unknown` with a message that states `action` and `destination`.
    pub(super) fn unknown(&self) -> Parsed {
        let named = |name: &Option<String>| name.as_deref().map_or_else(|| "none".to_owned(), quoted);
        let (action, destination) = (named(&self.action), named(&self.destination));
        Parsed::Unknown(format!(
            "Spillway does not know what Auto Scaling group {} does: its action is {action}, its destination {destination}",
            quoted(&self.group)
        ))
    }

    pub(super) fn waits_for(self, kind: Kind) -> Parsed {
        let hook = Hook { group: self.group, name: self.name, token: self.token };
        let parsed = ParsedNotice { hook: Some(hook), ..ParsedNotice::of(kind, Deadline::HeldByHook) };
        Parsed::Of(Concerns::One(self.instance), parsed)
    }
}

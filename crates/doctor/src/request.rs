//! The events that ask for the doctor. Pure.
//!
//! They are read more leniently than a notice: nothing in them can make the doctor touch anything, and people write
//! them by hand.

use serde::Serialize;
use serde_json::Value;
use spillway_core::cluster::ClusterName;

/// `CloudTrail` tells of a call that changed something.
const CHANGE: &str = "AWS API Call via CloudTrail";

/// Who asks, and about what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTestRequest {
    pub(crate) occasion: Occasion,
    /// The only cluster to look at; without it, all of ours.
    pub(crate) cluster: Option<ClusterName>,
}

/// What it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Occasion {
    /// Somebody asks, or the weekly schedule.
    Asked,
    /// A deployment has come to its end.
    Deployed,
    /// Somebody has changed a rule of the stack, its targets, or the function's policy.
    RulesChanged,
    /// Somebody has changed a lifecycle hook.
    HooksChanged,
}

impl Occasion {
    /// Whether all is looked at, and not just what has changed.
    pub(crate) fn is_for_all(self) -> bool {
        matches!(self, Self::Asked | Self::Deployed)
    }
}

impl SelfTestRequest {
    /// Returns `true` if the request comes from the end of a deployment.
    #[must_use]
    pub fn ends_a_deployment(&self) -> bool {
        self.occasion == Occasion::Deployed
    }
}

/// The request, if the event is one.
pub fn request(event: &Value) -> Option<SelfTestRequest> {
    let text = |key: &str| event.get(key).and_then(Value::as_str);
    match (text("source")?, text("detail-type")?) {
        ("spillway", "Spillway Doctor") => {
            let cluster = event.pointer("/detail/cluster").and_then(Value::as_str).filter(|name| !name.is_empty());
            Some(SelfTestRequest { occasion: Occasion::Asked, cluster: cluster.map(ClusterName::new) })
        }
        // The rule lets only this very stack's through.
        ("aws.cloudformation", "CloudFormation Stack Status Change") => {
            let status = event.pointer("/detail/status-details/status").and_then(Value::as_str)?;
            let is_over = matches!(status, "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "UPDATE_ROLLBACK_COMPLETE");
            is_over.then_some(SelfTestRequest { occasion: Occasion::Deployed, cluster: None })
        }
        // The rule lets only changes through.
        ("aws.events" | "aws.lambda", CHANGE) => {
            Some(SelfTestRequest { occasion: Occasion::RulesChanged, cluster: None })
        }
        ("aws.autoscaling", CHANGE) => Some(SelfTestRequest { occasion: Occasion::HooksChanged, cluster: None }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_doctor_is_asked_for_all_clusters_or_for_one() {
        let sample: Value = serde_json::from_str(include_str!("../../../events/doctor.json")).unwrap();
        assert_eq!(request(&sample), Some(SelfTestRequest { occasion: Occasion::Asked, cluster: None }));
        let bare = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": "prod"}});
        assert_eq!(request(&bare).unwrap().cluster, Some(ClusterName::new("prod")));
    }

    #[test]
    fn the_end_of_a_deployment_asks_for_it_and_its_beginning_does_not() {
        let deployment = |status: &str| {
            json!({"source": "aws.cloudformation", "detail-type": "CloudFormation Stack Status Change",
                "detail": {"stack-id": "arn:aws:cloudformation:us-east-1:123456789012:stack/spillway/1",
                    "status-details": {"status": status, "status-reason": ""}}})
        };
        let deployed = Some(SelfTestRequest { occasion: Occasion::Deployed, cluster: None });
        for status in ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"] {
            assert_eq!(request(&deployment(status)), deployed, "{status}");
        }
        for status in ["CREATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "DELETE_COMPLETE"] {
            assert_eq!(request(&deployment(status)), None, "{status}");
        }
    }

    #[test]
    fn a_change_asks_for_what_it_concerns() {
        for (sample, occasion) in [
            (include_str!("../../../events/rule-changed.json"), Occasion::RulesChanged),
            (include_str!("../../../events/targets-changed.json"), Occasion::RulesChanged),
            (include_str!("../../../events/permission-added.json"), Occasion::RulesChanged),
            (include_str!("../../../events/hook-deleted.json"), Occasion::HooksChanged),
        ] {
            let event: Value = serde_json::from_str(sample).unwrap();
            assert_eq!(request(&event), Some(SelfTestRequest { occasion, cluster: None }), "{sample}");
        }
    }

    #[test]
    fn a_notice_is_no_order() {
        assert_eq!(request(&json!({"source": "aws.ec2", "detail-type": "Spillway Doctor"})), None);
        assert_eq!(request(&json!({"source": "spillway", "detail-type": "Spillway Undo Check"})), None);
        assert_eq!(request(&json!("no object")), None);
    }
}

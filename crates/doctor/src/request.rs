//! Parses events that start a self-test. Pure.

use serde_json::Value;
use spillway_core::cluster::ClusterName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTestRequest {
    /// Cluster to check; all clusters if `None`.
    pub(crate) cluster: Option<ClusterName>,
    /// `true` if the self-test runs at the end of a deployment.
    pub ends_deployment: bool,
}

pub fn request(event: &Value) -> Option<SelfTestRequest> {
    let text = |key: &str| event.get(key).and_then(Value::as_str);
    match (text("source")?, text("detail-type")?) {
        ("spillway", "Spillway Doctor") => {
            let cluster = event.pointer("/detail/cluster").and_then(Value::as_str).filter(|name| !name.is_empty());
            Some(SelfTestRequest { cluster: cluster.map(ClusterName::new), ends_deployment: false })
        }
        // The EventBridge rule passes on only events of this stack.
        ("aws.cloudformation", "CloudFormation Stack Status Change") => {
            let status = event.pointer("/detail/status-details/status").and_then(Value::as_str)?;
            let is_over = matches!(status, "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "UPDATE_ROLLBACK_COMPLETE");
            is_over.then_some(SelfTestRequest { cluster: None, ends_deployment: true })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn doctor_event_requests_all_clusters_or_one() {
        let sample: Value = serde_json::from_str(include_str!("../../../events/doctor.json")).unwrap();
        assert_eq!(request(&sample), Some(SelfTestRequest { cluster: None, ends_deployment: false }));
        let bare = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": "prod"}});
        assert_eq!(request(&bare).unwrap().cluster, Some(ClusterName::new("prod")));
    }

    #[test]
    fn end_of_a_deployment_requests_a_self_test() {
        let deployment = |status: &str| {
            json!({"source": "aws.cloudformation", "detail-type": "CloudFormation Stack Status Change",
                "detail": {"stack-id": "arn:aws:cloudformation:us-east-1:123456789012:stack/spillway/1",
                    "status-details": {"status": status, "status-reason": ""}}})
        };
        let deployed = Some(SelfTestRequest { cluster: None, ends_deployment: true });
        for status in ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"] {
            assert_eq!(request(&deployment(status)), deployed, "{status}");
        }
        for status in ["CREATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "DELETE_COMPLETE"] {
            assert_eq!(request(&deployment(status)), None, "{status}");
        }
        assert_eq!(request(&json!({"source": "aws.ec2", "detail-type": "Spillway Doctor"})), None);
        assert_eq!(request(&json!({"source": "spillway", "detail-type": "Spillway Undo Check"})), None);
        assert_eq!(request(&json!("no object")), None);
    }
}

//! What stands before a change of the stage's node or an eviction of its pods: an admission policy, or a webhook.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{Stage, WAIT, user};

impl Stage {
    /// Has an admission policy refuse that the function changes the stage's node, by that reason: `Forbidden`, or the default.
    pub async fn refuse_changes_of_node(&self, reason: Option<&str>) {
        let (client, name, user) = (self.world.admin(), &self.name, user(&self.name));
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]});
        // Dry runs too, whosever they are: by them it is seen that the policy is in force.
        let about = format!(
            "object.metadata.name == '{}' && (request.dryRun == true || request.userInfo.username.endsWith('{user}'))",
            self.node.name
        );
        let policy = json!({
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "matchConditions": [{"name": "node", "expression": about}],
                "validations": [{"expression": "false", "message": "nobody cordons here", "reason": reason}],
            },
        });
        let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
        let policy = serde_json::from_value::<ValidatingAdmissionPolicy>(policy).expect("it is one");
        let binding = serde_json::from_value::<ValidatingAdmissionPolicyBinding>(binding).expect("it is one");
        let made = PostParams::default();
        Api::all(client.clone()).create(&made, &policy).await.expect("the policy is new");
        Api::all(client).create(&made, &binding).await.expect("the binding is new");
        self.until_dry_changes_fail().await;
    }

    /// Has the API server ask a webhook about the function's changes of the stage's node that does not answer.
    pub async fn ask_webhook_that_is_down(&self) {
        self.ask_webhook(&json!({"url": "https://127.0.0.1:1/"})).await;
        self.until_dry_changes_fail().await;
    }

    /// Has the API server ask a webhook about the function's changes of the node, and about dry runs, whosever they are: by them it
    /// is seen that it is asked.
    async fn ask_webhook(&self, client_config: &Value) {
        let (name, user) = (&self.name, user(&self.name));
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]});
        let about = format!("object.metadata.name == '{}'", self.node.name);
        let about = format!("{about} && (request.dryRun == true || request.userInfo.username.endsWith('{user}'))");
        let webhook = json!({
            "name": "nodes.example.com",
            "clientConfig": client_config,
            "rules": [rule],
            "matchConditions": [{"name": "this-stage", "expression": about}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 30,
            "admissionReviewVersions": ["v1"],
        });
        let configuration = json!({"metadata": {"name": name}, "webhooks": [webhook]});
        let configuration = serde_json::from_value::<ValidatingWebhookConfiguration>(configuration).expect("it is one");
        Api::all(self.world.admin()).create(&PostParams::default(), &configuration).await.expect("it is new");
    }

    /// Has the API server ask that webhook no more.
    pub async fn ask_webhook_no_more(&self) {
        let webhooks = Api::<ValidatingWebhookConfiguration>::all(self.world.admin());
        webhooks.delete(&self.name, &DeleteParams::default()).await.expect("it is there");
    }

    /// Waits until a change of the stage's node without effect is refused.
    async fn until_dry_changes_fail(&self) {
        let refused = async {
            while self.change_without_effect().await.is_ok() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(WAIT, refused).await.expect("it is in force");
    }

    async fn change_without_effect(&self) -> kube::Result<()> {
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        let change = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
        Api::<Node>::all(self.world.admin()).patch(&self.node.name, &dry, &change).await.map(drop)
    }
}

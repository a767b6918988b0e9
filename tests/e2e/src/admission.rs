//! Admission of changes of the stage's node: a policy or a webhook that refuses.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Stage, until, user};

fn object<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("the objects below are valid")
}

impl Stage {
    /// Condition of the function's changes of the node, and of dry runs by anybody, which show that the refusal is in force.
    fn condition(&self) -> String {
        let (node, user) = (&self.node.name, user(&self.name));
        format!(
            "object.metadata.name == '{node}' && (request.dryRun == true || request.userInfo.username.endsWith('{user}'))"
        )
    }

    /// Has an admission policy refuse the function's changes of the node, with the reason `Forbidden` or the default.
    pub async fn refuse_changes_of_node(&self, reason: Option<&str>) {
        let (client, name) = (self.client(), &self.name);
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]});
        let policy: ValidatingAdmissionPolicy = object(json!({
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "matchConditions": [{"name": "node", "expression": self.condition()}],
                "validations": [{"expression": "false", "message": "no cordons here", "reason": reason}],
            },
        }));
        let binding: ValidatingAdmissionPolicyBinding =
            object(json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}));
        Api::all(client.clone()).create(&PostParams::default(), &policy).await.expect("the policy is new");
        Api::all(client).create(&PostParams::default(), &binding).await.expect("the binding is new");
        self.until_changes_are_refused().await;
    }

    /// Registers a webhook for the function's changes of the node that cannot be reached.
    pub async fn add_unreachable_webhook(&self) {
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]});
        let webhook = json!({
            "name": "nodes.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [rule],
            "matchConditions": [{"name": "this-stage", "expression": self.condition()}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 30,
            "admissionReviewVersions": ["v1"],
        });
        let webhooks: ValidatingWebhookConfiguration =
            object(json!({"metadata": {"name": self.name}, "webhooks": [webhook]}));
        Api::all(self.client()).create(&PostParams::default(), &webhooks).await.expect("the webhook is new");
        self.until_changes_are_refused().await;
    }

    pub async fn remove_webhook(&self) {
        let webhooks = Api::<ValidatingWebhookConfiguration>::all(self.client());
        webhooks.delete(&self.name, &DeleteParams::default()).await.expect("the webhook exists");
    }

    async fn until_changes_are_refused(&self) {
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        let change = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
        let nodes = Api::<Node>::all(self.client());
        until("the refusal", async || nodes.patch(&self.node.name, &dry, &change).await.is_err()).await;
    }
}

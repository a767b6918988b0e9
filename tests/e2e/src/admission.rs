//! What stands before a change of the stage's node or an eviction of its pods: an admission policy, or a webhook.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, EvictParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::webhook::Answer;
use spillway_bed::{Webhook, pods};
use tokio::time::{sleep, timeout};

use crate::{Stage, WAIT, user};

/// What a webhook is asked about.
#[derive(Debug, Clone, Copy)]
pub enum Asked {
    /// Changes of the stage's node.
    Nodes,
    /// Evictions of the stage's pods.
    Evictions,
}

impl Asked {
    /// Does it without effect, as somebody else than the function.
    async fn rehearse(self, stage: &Stage) -> kube::Result<()> {
        let client = stage.world.admin();
        match self {
            Self::Nodes => {
                let dry = PatchParams { dry_run: true, ..PatchParams::default() };
                let change = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
                Api::<Node>::all(client).patch(&stage.node.name, &dry, &change).await.map(drop)
            }
            Self::Evictions => {
                let pods = pods::on_node(&client, &stage.node.name).await.expect("the API server answers");
                let pod = pods.first().expect("a pod is there").name_any();
                let dry = EvictParams {
                    post_options: PostParams { dry_run: true, ..PostParams::default() },
                    ..EvictParams::default()
                };
                Api::<Pod>::namespaced(client, &stage.name).evict(&pod, &dry).await.map(drop)
            }
        }
    }
}

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
        self.ask_webhook(Asked::Nodes, &json!({"url": "https://127.0.0.1:1/"})).await;
        self.until_dry_changes_fail().await;
    }

    /// Has the API server ask a webhook that takes longer to answer than any may take, which is 30 s.
    pub async fn ask_webhook_that_is_slow(&self, about: Asked) -> Webhook {
        let webhook = Webhook::start().await.expect("a webhook");
        webhook.answers([], Answer::Slow(WAIT));
        self.ask_webhook(about, &json!({"url": webhook.url(), "caBundle": Webhook::ca()})).await;
        let asking = async {
            loop {
                // A dry run: it ends when the webhook has been asked.
                let _ = about.rehearse(self).await;
                sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            posted = webhook.until_posted(1) => drop(posted.unwrap_or_else(|error| panic!("{error}"))),
            () = asking => {}
        }
        webhook
    }

    /// Has the API server ask a webhook about what the function does, and about dry runs, whosever they are: by them it is seen
    /// that it is asked.
    async fn ask_webhook(&self, asked: Asked, client_config: &Value) {
        let (name, user) = (&self.name, user(&self.name));
        let (webhook, rule, about) = match asked {
            Asked::Nodes => (
                "nodes.example.com",
                json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}),
                format!("object.metadata.name == '{}'", self.node.name),
            ),
            Asked::Evictions => (
                "evictions.example.com",
                json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["pods/eviction"]}),
                format!("request.namespace == '{name}'"),
            ),
        };
        let about = format!("{about} && (request.dryRun == true || request.userInfo.username.endsWith('{user}'))");
        let webhook = json!({
            "name": webhook,
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
            while Asked::Nodes.rehearse(self).await.is_ok() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(WAIT, refused).await.expect("it is in force");
    }
}

//! What a person who enrols clusters finds and changes: the stack, access entries, groups, and the function's own answer.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use super::Aws;
use crate::error::BedError;
use crate::lambda::Lambda;

/// How long the AWS side holds the question whether somebody has asked for the function.
const HOLD_S: u64 = 20;

impl Aws {
    /// Deploys a stack, as far as CloudFormation describes it.
    pub async fn deploy_stack(
        &self,
        name: &str,
        template: &str,
        outputs: &BTreeMap<&str, String>,
        parameters: &BTreeMap<&str, &str>,
    ) -> Result<(), BedError> {
        let body = json!({"name": name, "text": template, "outputs": outputs, "parameters": parameters});
        self.post::<Value>("stacks", &body).await.map(drop)
    }

    /// CloudFormation deletes a stack, which the bed has from its beginning.
    pub async fn delete_stack(&self, name: &str) -> Result<(), BedError> {
        self.call::<Value>(Method::DELETE, &format!("stacks/{name}"), None).await.map(drop)
    }

    /// All of the account that a stack, or a function of it, could leave: the names, by kind.
    pub async fn left(&self) -> Result<Value, BedError> {
        self.call(Method::GET, "left", None).await
    }

    /// The access entries of a cluster, as EKS describes them.
    pub async fn access_entries(&self, cluster: &str) -> Result<Vec<Value>, BedError> {
        self.call(Method::GET, &format!("clusters/{cluster}/entries"), None).await
    }

    /// EKS knows the cluster no longer; its control plane runs on.
    pub async fn hide_cluster(&self, cluster: &str) -> Result<(), BedError> {
        self.call::<Value>(Method::DELETE, &format!("clusters/{cluster}"), None).await.map(drop)
    }

    /// The hooks and the tags of a group.
    pub async fn group(&self, name: &str) -> Result<Value, BedError> {
        self.call(Method::GET, &format!("groups/{name}"), None).await
    }

    /// Has the function answer whoever invokes it and waits. Never returns, but with an error.
    pub async fn serve(&self, function: &str, lambda: &Lambda) -> Result<std::convert::Infallible, BedError> {
        self.post::<Value>("served", &json!({"function": function})).await?;
        loop {
            let asked: Value = self.post("asked", &json!({"function": function, "wait_s": HOLD_S})).await?;
            let Some(id) = asked.get("id") else { continue };
            let (result, failed) = match lambda.invoke(&asked["event"]).await.result {
                Ok(result) => (result, false),
                Err(error) => (json!({"errorMessage": format!("{error:?}")}), true),
            };
            self.post::<Value>("said", &json!({"id": id, "result": result, "failed": failed})).await?;
        }
    }
}

//! Setting a node's conditions, and taking them off when it is given back. Which, core's `node/conditions.rs` decides.

use std::cell::Cell;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, Request};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use spillway_core::kube::status::is_of_rbac;
use spillway_core::node::conditions::{DrainStage, removing, setting};
use spillway_core::node::patch::FIELD_MANAGER;
use spillway_startup::logs::chain;
use tokio::time::timeout;

use crate::kube::ApiError;

/// How long one answer is waited for: nothing else waits for it but the end of the invocation.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sets the conditions of one node, as long as that works.
pub(crate) struct Conditions<'a> {
    client: &'a Client,
    node: &'a str,
    /// One did not get through: no other is tried.
    is_given_up: Cell<bool>,
}

impl<'a> Conditions<'a> {
    pub(crate) fn of(client: &'a Client, node: &'a str) -> Self {
        Self { client, node, is_given_up: Cell::new(false) }
    }

    /// Sets what belongs to the stage. A failure is logged once, and changes nothing for the drain.
    pub(crate) async fn set(&self, stage: DrainStage, now: Timestamp) {
        if self.is_given_up.get() {
            return;
        }
        if let Err(error) = patch_status(self.client, self.node, setting(&stage, now)).await {
            self.is_given_up.set(true);
            let (node, to_do) = (self.node, to_do(&error));
            let error = chain(&error);
            tracing::warn!(
                node.name = node,
                error,
                "cannot set the conditions of node {node}; the drain goes on{to_do}"
            );
        }
    }
}

/// Takes our conditions off a node that was given back, if it has any.
pub(crate) async fn take_off(client: &Client, node: &Node) {
    let Some(patch) = removing(node) else { return };
    let name = node.name_any();
    if let Err(error) = patch_status(client, &name, patch).await {
        let to_do = to_do(&error);
        let error = chain(&error);
        tracing::warn!(node.name = name, error, "cannot take the conditions of the drain off node {name}{to_do}");
    }
}

fn to_do(error: &ApiError) -> &'static str {
    match error {
        ApiError::Refused(status) if is_of_rbac(status) => " (apply deploy/optional/node-conditions.yaml)",
        _ => "",
    }
}

/// Nothing of the node is read from the answer, which has all its images.
async fn patch_status(client: &Client, node: &str, patch: Value) -> Result<(), ApiError> {
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let request = Request::new("/api/v1/nodes").patch_subresource("status", node, &params, &Patch::Strategic(patch));
    let request = request.map_err(|error| ApiError::from(kube::Error::BuildRequest(error)))?;
    match timeout(PATIENCE, client.request_text(request)).await {
        Ok(answer) => answer.map(drop).map_err(ApiError::from),
        Err(_) => Err(ApiError::Timeout(PATIENCE)),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use tokio::time::Instant;

    use super::*;
    use crate::test_support::api_server::{NODE, NODE_PATH};
    use crate::test_support::context::{TestContext, client};
    use crate::test_support::script::call;

    #[test]
    fn a_right_that_is_missing_is_told_with_the_file_that_gives_it() {
        let told = |message| to_do(&ApiError::Refused(Box::new(Status::failure(message, "Forbidden").with_code(403))));
        let missing = r#"nodes "n-1" is forbidden: User "spillway" cannot patch resource "nodes/status""#;
        assert_eq!(told(missing), " (apply deploy/optional/node-conditions.yaml)");
        assert_eq!(told("admission webhook 'w' denied the request"), "");
        assert_eq!(to_do(&ApiError::TimeUp), "");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_waited_for_two_seconds_once() {
        let context = TestContext::new(&[], [call(format!("PATCH {NODE_PATH}/status"))], []);
        let (client, began) = (client(&context).await, Instant::now());
        let conditions = Conditions::of(&client, NODE);
        for _ in 0..2 {
            conditions.set(DrainStage::GivenBack, Timestamp::UNIX_EPOCH).await;
            assert_eq!(began.elapsed().as_secs(), 2);
        }
    }
}

//! Uncordon of a node: removes Spillway's marks, and the cordon if it is still Spillway's. Core's `node/uncordon.rs` decides.

use kube::{Api, Client, ResourceExt as _};
use spillway_core::instance::Instance;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult, decide};

use super::find::{by_likely_names, find};
use super::patch;
use crate::kube::{ApiError, until_settled};

/// Maximum number of attempts at an uncordon. The node may change meanwhile: a kubelet writes its status every ten seconds.
const UNDO_ATTEMPTS: u32 = 5;

#[derive(Debug, Default)]
pub(crate) struct Undo {
    pub(crate) has_looked: bool,
    /// A patch got no answer, so the patch may have been applied.
    is_unanswered: bool,
}

/// Uncordons the instance's node if `over` is the cause for which the node was claimed.
pub(crate) async fn uncordon(
    client: &Client,
    instance: &Instance,
    over: &UncordonCause,
    undo: &mut Undo,
) -> Result<UncordonResult, ApiError> {
    let nodes = &Api::all(client.clone());
    until_settled(UNDO_ATTEMPTS, async || {
        let found = match over {
            // Each launched instance causes such a notice, and most have no node in the cluster: reading all nodes costs too
            // much.
            UncordonCause::Stop { .. } => by_likely_names(nodes, instance).await?,
            _ => find(nodes, instance).await?,
        };
        undo.has_looked = true;
        let Some(node) = found else { return Ok(UncordonResult::NoNode) };
        let (patch, undone) = decide(&node, over);
        let Some(patch) = patch else {
            return Ok(match undone {
                UncordonResult::NotOurs { node } if undo.is_unanswered => UncordonResult::GivenBack { node },
                undone => undone,
            });
        };
        let sent = patch::send(nodes, &node.name_any(), patch).await;
        undo.is_unanswered |= sent.as_ref().is_err_and(|error| error.code().is_none());
        Ok(sent?.map_or(UncordonResult::NoNode, |_| undone))
    })
    .await
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use spillway_notice::Kind;

    use super::*;
    use crate::test_support::api_server::{NODE_PATH, claimed, status};
    use crate::test_support::context::{TestContext, client};
    use crate::test_support::instance;
    use crate::test_support::script::call;

    #[tokio::test(start_paused = true)]
    async fn uncordon_of_a_changing_node_is_tried_five_times() {
        let node = claimed(Kind::Stopping.as_str(), "e-0", "r-0");
        let look = || call(format!("GET {NODE_PATH}")).says(200, &node);
        let changed = || call(format!("PATCH {NODE_PATH}")).says(422, status(422, "Invalid", "nodes"));
        let context = TestContext::new(&[], (0..5).flat_map(|_| [look(), changed()]), []);
        let runs = UncordonCause::Stop { runs_since: Timestamp::UNIX_EPOCH };
        let undone = uncordon(&client(&context).await, &instance(), &runs, &mut Undo::default()).await;
        assert!(matches!(undone, Err(ApiError::Contended(_))), "{undone:?}");
    }
}

//! Giving a node back: what was put on it goes, and so does the cordon, if it is still ours. What is taken off is decided in
//! core's `node/uncordon.rs`.

use kube::{Api, Client, ResourceExt as _};
use spillway_core::instance::Instance;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult, decide};

use super::find::{by_likely_names, find};
use super::patch;
use crate::kube::{ApiError, until_settled};

/// How often an undo is tried again when the node changes between looking and patching: a kubelet
/// writes its status every ten seconds at most.
const UNDO_ATTEMPTS: u32 = 5;

#[derive(Debug, Default)]
pub(crate) struct Undo {
    pub(crate) has_looked: bool,
    /// Whether a change has failed without a refusal: it may have been made.
    is_unanswered: bool,
}

/// Gives the instance's node back, if that was what it was claimed for.
pub(crate) async fn uncordon(
    client: &Client,
    instance: &Instance,
    over: &UncordonCause,
    undo: &mut Undo,
) -> Result<UncordonResult, ApiError> {
    let nodes = &Api::all(client.clone());
    until_settled(UNDO_ATTEMPTS, async || {
        let found = match over {
            // Every instance that is launched runs, and most are not in the cluster yet, or never will be: a search
            // through all nodes is not worth it.
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
    async fn a_node_that_changes_each_time_is_given_back_five_times_in_vain() {
        let node = claimed(Kind::Stopping.as_str(), "e-0", "r-0");
        let look = || call(format!("GET {NODE_PATH}")).says(200, &node);
        let changed = || call(format!("PATCH {NODE_PATH}")).says(422, status(422, "Invalid", "nodes"));
        let context = TestContext::new(&[], (0..5).flat_map(|_| [look(), changed()]), []);
        let runs = UncordonCause::Stop { runs_since: Timestamp::UNIX_EPOCH };
        let undone = uncordon(&client(&context).await, &instance(), &runs, &mut Undo::default()).await;
        assert!(matches!(undone, Err(ApiError::Contended(_))), "{undone:?}");
    }
}

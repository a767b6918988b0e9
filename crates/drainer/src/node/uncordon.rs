//! Removes Spillway's claim and cordon from a node. Core's `node/uncordon.rs` makes the patch.

use kube::{Api, Client, ResourceExt as _};
use spillway_core::instance::Instance;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult, decide};

use super::find::{by_likely_names, find};
use super::patch;
use crate::kube::{ApiError, until_settled};

/// Maximum number of attempts to uncordon a node. An attempt fails if the node changes between the read and the patch.
const UNDO_ATTEMPTS: u32 = 5;

#[derive(Debug, Default)]
pub(crate) struct Undo {
    pub(crate) has_looked: bool,
    /// `true` if a patch got no answer and may have been applied.
    is_unanswered: bool,
}

/// Uncordons the instance's node if Spillway claimed the node for an interruption that is over. `over` names the interruption.
pub(crate) async fn uncordon(
    client: &Client,
    instance: &Instance,
    over: &UncordonCause,
    undo: &mut Undo,
) -> Result<UncordonResult, ApiError> {
    let nodes = &Api::all(client.clone());
    until_settled(UNDO_ATTEMPTS, async || {
        let found = match over {
            // Each launched instance causes such a notice, and most instances have no node here: reading all nodes costs too
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

//! A dry run: says what would be done, asks the API server which pods would go, and touches nothing.

use std::future::pending;
use std::pin::pin;

use kube::ResourceExt as _;
use spillway_eks::ClusterName;

use super::cannot;
use crate::aws::instance::{Instance, ManagedBy};
use crate::context::target::Attempt;
use crate::decision::{self, Decision, Reason};
use crate::drain::deadline::Window;
use crate::drain::dry_run::{Preview, preview};
use crate::handler::Spillway;
use crate::receipt::Receipt;
use crate::receipt::ending::{self, Outcome, ignored};

impl Spillway {
    /// What the act would come to, as it stands now.
    pub(crate) async fn dry_run(
        &self,
        act: Decision,
        attempt: &Attempt<'_>,
        instance: &Instance,
        owner: ManagedBy,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        if let Decision::Ignore(reason) = &act {
            return Ok(ignored(reason));
        }
        let clock = attempt.invocation.clock;
        let window = attempt.window(&self.settings);
        let Some((kubernetes, node)) = self.find(&cluster, instance, window.end).await? else {
            let no_node = Reason::NoNode { cluster, provider_id: instance.provider_id() };
            return Ok(match (act, &attempt.notice.hook) {
                (Decision::AwaitReady, _) => {
                    let would =
                        format!("waited for the node of instance {} and completed its launch hook", instance.id);
                    ending::would_have(&would)
                }
                (Decision::Undo, _) | (_, None) => ignored(&no_node),
                (_, Some(_)) => ending::would_have(&format!("let the instance go: {no_node}")),
            });
        };
        if matches!(act, Decision::Drain | Decision::Cordon | Decision::NodeClaim)
            && let Some(why) = attempt.claimant(owner, &self.settings).barred_from(&node)
        {
            return self.unclaimed(why, attempt, instance, cluster, pin!(pending()), receipt).await;
        }
        let node = node.name_any();
        receipt.node = Some(node.clone());
        let mut would = match act {
            Decision::Drain => {
                let preview = preview(&kubernetes, &node, window, clock.now())
                    .await
                    .map_err(|error| cannot(format!("list the pods of node {node}"), &cluster, error))?;
                receipt.preview(&preview);
                drained(&node, &preview, window)
            }
            Decision::Cordon => format!("cordoned node {node} and left its pods"),
            Decision::AwaitReady => format!("completed the launch hook as soon as node {node} is Ready"),
            Decision::Undo => format!("given node {node} back to use, if it was Spillway that took it out"),
            Decision::OutOfService => format!("declared node {node} out of service, if it is not Ready"),
            Decision::NodeClaim => format!("deleted the NodeClaim of node {node}, so that Karpenter drains it"),
            Decision::Ignore(reason) => return Ok(ignored(&reason)),
        };
        let begins = decision::begins(attempt.notice, &self.settings);
        if begins > clock.now() {
            would = format!("waited until {begins}, and then {would}");
        }
        Ok(ending::would_have(&would))
    }
}

fn drained(node: &str, preview: &Preview, window: Window) -> String {
    let forced = window.instance_goes.hard().is_some() && preview.pods.values().any(|pod| pod.would.cause().is_some());
    let then = if forced { "; what is still held is deleted in time to shut down" } else { "" };
    format!("drained node {node}: {preview}{then}")
}

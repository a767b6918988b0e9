//! A dry run: says what would be done, asks the API server which pods would go, and touches nothing.

use std::future::pending;
use std::pin::pin;

use kube::ResourceExt as _;
use spillway_eks::ClusterName;

use super::cannot;
use crate::attempt::Attempt;
use crate::decision::{self, Act, Reason};
use crate::drain::deadline::Window;
use crate::drain::outlook::{Outlook, outlook};
use crate::ending::{self, Outcome, ignored};
use crate::handler::Spillway;
use crate::instance::{Instance, Owner};
use crate::receipt::Receipt;

impl Spillway {
    /// What the act would come to, as it stands now.
    pub(crate) async fn dry_run(
        &self,
        act: Act,
        attempt: &Attempt<'_>,
        instance: &Instance,
        owner: Owner,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        if let Act::Ignore(reason) = &act {
            return Ok(ignored(reason));
        }
        let clock = attempt.invocation.clock;
        let window = attempt.window(&self.settings);
        let Some((kubernetes, node)) = self.find(&cluster, instance, window.end).await? else {
            let no_node = Reason::NoNode { cluster, provider_id: instance.provider_id() };
            return Ok(match (act, &attempt.interruption.hook) {
                (Act::AwaitReady, _) => {
                    let would =
                        format!("waited for the node of instance {} and completed its launch hook", instance.id);
                    ending::would_have(&would)
                }
                (Act::Undo, _) | (_, None) => ignored(&no_node),
                (_, Some(_)) => ending::would_have(&format!("let the instance go: {no_node}")),
            });
        };
        if matches!(act, Act::Drain | Act::Cordon | Act::NodeClaim)
            && let Some(why) = attempt.claimant(owner, &self.settings).barred_from(&node)
        {
            return self.unclaimed(why, attempt, instance, cluster, pin!(pending()), receipt).await;
        }
        let node = node.name_any();
        receipt.node = Some(node.clone());
        let mut would = match act {
            Act::Drain => {
                let outlook = outlook(&kubernetes, &node, window, clock.now())
                    .await
                    .map_err(|error| cannot(format!("list the pods of node {node}"), &cluster, error))?;
                receipt.outlook(&outlook);
                drained(&node, &outlook, window)
            }
            Act::Cordon => format!("cordoned node {node} and left its pods"),
            Act::AwaitReady => format!("completed the launch hook as soon as node {node} is Ready"),
            Act::Undo => format!("given node {node} back to use, if it was Spillway that took it out"),
            Act::OutOfService => format!("declared node {node} out of service, if it is not Ready"),
            Act::NodeClaim => format!("deleted the NodeClaim of node {node}, so that Karpenter drains it"),
            Act::Ignore(reason) => return Ok(ignored(&reason)),
        };
        let begins = decision::begins(attempt.interruption, &self.settings);
        if begins > clock.now() {
            would = format!("waited until {begins}, and then {would}");
        }
        Ok(ending::would_have(&would))
    }
}

fn drained(node: &str, outlook: &Outlook, window: Window) -> String {
    let forced = window.instance_goes.hard().is_some() && outlook.pods.values().any(|pod| pod.would.cause().is_some());
    let then = if forced { "; what is still held is deleted in time to shut down" } else { "" };
    format!("drained node {node}: {outlook}{then}")
}

//! Dry run: describes what the decision would do, tests evictions with `dryRun`, and changes nothing.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt as _};
use spillway_core::decision::{self, Decision, Reason};
use spillway_core::drain::deadline::Window;
use spillway_core::drain::dry_run::Preview;
use spillway_core::outcome::Outcome;

use super::Next;
use super::claim::unclaimed;
use crate::context::{Context, Target};
use crate::drain::dry_run::preview;
use crate::failure::Failure;
use crate::node::find;
use crate::receipt::of_preview;
use crate::receipt::record::Record;

const COMPLETED_AT_ONCE: &str = "completed the launch hook at once";

/// Describes what the decision would do without the dry run.
pub(crate) async fn dry_run(
    context: &Context,
    decision: Decision,
    target: &Target<'_>,
    record: &mut Record,
) -> Result<Next, Failure> {
    if let Decision::Ignore(reason) = decision {
        return Ok(Outcome::Ignored(reason).into());
    }
    let Target { attempt, cluster, .. } = target;
    let clock = attempt.invocation.clock;
    let window = attempt.window;
    let Some((client, node)) = find_node(context, target, window).await? else {
        return Ok(without_node(&decision, target).into());
    };
    if matches!(decision, Decision::Drain | Decision::Cordon | Decision::NodeClaim)
        && let Some(why) = target.claimant().barred_from(&node)
    {
        return unclaimed(why, context, target, record).await;
    }
    let node = node.name_any();
    record.found(&node);
    let would = match decision {
        Decision::Drain => {
            let preview = preview(&client, &node, window, clock.now()).await.map_err(|error| {
                let doing = format!("list the pods of node {node}");
                Failure::Kubernetes { doing, cluster: (*cluster).clone(), error }
            })?;
            record.pods = of_preview(&preview);
            drained(&node, &preview, window)
        }
        Decision::Cordon => format!("cordoned node {node} and left its pods"),
        Decision::AwaitReady => format!("completed the launch hook as soon as node {node} is Ready"),
        Decision::Complete => COMPLETED_AT_ONCE.to_owned(),
        Decision::Undo => format!("uncordoned node {node} if Spillway had cordoned it"),
        Decision::OutOfService => format!("declared node {node} out of service if it is not Ready"),
        Decision::NodeClaim => format!("deleted the NodeClaim of node {node}: Karpenter drains it"),
        Decision::Ignore(reason) => return Ok(Outcome::Ignored(reason).into()),
        Decision::Postpone(begins) => format!("scheduled the notice for {begins}"),
    };
    let begins = decision::begins(attempt.notice, attempt.settings);
    let waits = begins > clock.now();
    let would = if waits { format!("waited until {begins} and then {would}") } else { would };
    Ok(Outcome::WouldHave(would).into())
}

/// Describes the outcome for an instance without a node.
fn without_node(decision: &Decision, target: &Target<'_>) -> Outcome {
    let Target { attempt, instance, cluster, .. } = target;
    let no_node = Reason::NoNode { cluster: (*cluster).clone(), provider_id: instance.provider_id() };
    match (decision, &attempt.notice.hook) {
        (Decision::AwaitReady, _) => {
            let id = &instance.id;
            Outcome::WouldHave(format!("waited for the node of instance {id} and completed its launch hook"))
        }
        (Decision::Complete, _) => Outcome::WouldHave(COMPLETED_AT_ONCE.to_owned()),
        (Decision::Undo, _) | (_, None) => Outcome::Ignored(no_node),
        (_, Some(_)) => Outcome::WouldHave(format!("completed the lifecycle hook: {no_node}")),
    }
}

/// Returns the target's node and a client for the cluster, or `None` if the instance has no node. Retries until the window
/// ends.
async fn find_node(context: &Context, target: &Target<'_>, window: Window) -> Result<Option<(Client, Node)>, Failure> {
    let doing = format!("find the node of instance {}", target.instance.id);
    let found = context.in_cluster(target.cluster, window.end, &doing, async |client| {
        let node = find(&Api::all(client.clone()), target.instance).await?;
        Ok(node.map(|node| (client, node)))
    });
    found.await
}

fn drained(node: &str, preview: &Preview, window: Window) -> String {
    let is_forced =
        window.instance_goes.latest().is_some() && preview.pods.values().any(|pod| pod.would.cause().is_some());
    let then = if is_forced { "; pods that stay blocked would be deleted in time for their grace period" } else { "" };
    format!("drained node {node}: {preview}{then}")
}

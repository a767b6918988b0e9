//! Which nodes could not be drained in two minutes right now, and because of which pod or budget.
//!
//! * `fleet`: which nodes are Spillway's to drain (pure)
//! * `budgets`: which pods each budget covers, and whether it lets one go (pure)
//! * `workload`: who makes a pod anew (pure)
//! * `survey`: what each pod would mean for a drain (pure)
//! * `cause`: what holds a drain up (pure)
//! * `findings`: each cause as a finding (pure)
//! * `verdict`: all of it as a check (pure)
//! * `pages`: lists of any length
//! * `rehearsal`: evictions without effect, for some of the pods that budgets cover
//!
//! Of a cluster's objects only what is needed is kept, so that one of 5,000 nodes fits.

mod budgets;
mod cause;
mod findings;
mod fleet;
mod pages;
mod rehearsal;
mod survey;
mod verdict;
mod workload;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::core::{PartialObjectMeta, Request};
use kube::{Client, Resource as _};
use spillway_core::drain::deadline::MARGIN;
use spillway_core::invocation::Invocation;
use spillway_core::kube::pod::Pod;
use spillway_notice::spot;
use spillway_settings::Settings;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use super::rights::Evictions;
use super::{Looked, cordon};
use crate::kube::ApiError;
use crate::self_test::report::Check;
use budgets::{Budget, ClusterBudgets};
use findings::Circumstances;
use fleet::Fleet;
use rehearsal::Rehearsal;
use survey::Survey;
use verdict::Pods;

const ID: &str = "nodes";

/// Pods that a drain finds on a node and that still run.
const RUNNING: &str = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

/// Looks at all nodes, budgets and pods until `end`.
pub(super) async fn look(
    client: &Client,
    settings: &Settings,
    evictions: Evictions,
    invocation: &Invocation,
    end: Instant,
) -> Looked {
    let clock = invocation.clock;
    match fleet_and_budgets(client, settings, end).await {
        Ok((fleet, budgets)) => {
            let ours = fleet.ours.iter().map(AsRef::as_ref);
            let cordon = cordon::look(client, settings, ours, &invocation.request_id, end).await;
            let window = spot::NOTICE.unsigned_abs().saturating_sub(MARGIN);
            let mut survey = Survey::new(&fleet, &budgets, window, clock.now());
            let running = (ListParams::default().fields(RUNNING), end);
            let pods = Request::new(Pod::url_path(&(), None));
            let seen =
                pages::each(client, |page| pods.list(page), running, |pod: Pod| pod, |pod| survey.see(&pod)).await;
            let rehearsal = match evictions {
                Evictions::Allowed => rehearsal::hold(client, &mut survey, clock, end).await,
                Evictions::Denied => Rehearsal::LeftOut,
            };
            survey.hold_by_few_allowed();
            let circumstances = Circumstances { window, budgets: &budgets, hook_wait: settings.hook_max_wait };
            let verdict = verdict::check(ID, &fleet, &survey, circumstances, &Pods { seen, rehearsal });
            Looked { checks: vec![cordon, verdict], nodes: fleet.ours.len() }
        }
        Err(error) => {
            let why = format!("the cluster's nodes were not looked at: {}", chain(&error));
            Looked { checks: vec![Check::unknown(ID, why)], nodes: 0 }
        }
    }
}

async fn fleet_and_budgets(
    client: &Client,
    settings: &Settings,
    end: Instant,
) -> Result<(Fleet, ClusterBudgets), ApiError> {
    let (mut fleet, mut budgets) = (Fleet::new(settings), ClusterBudgets::default());
    // Their labels are all that is wanted of them: a node is 17 KB and more.
    let nodes = Request::new(Node::url_path(&(), None));
    let name_and_labels = |node: PartialObjectMeta<Node>| (node.metadata.name, node.metadata.labels);
    let all = (ListParams::default(), end);
    pages::each(
        client,
        |page| nodes.list_metadata(page),
        all.clone(),
        name_and_labels,
        |(name, labels)| {
            fleet.see(&name.unwrap_or_default(), &labels.unwrap_or_default());
        },
    )
    .await?;
    let every = Request::new(PodDisruptionBudget::url_path(&(), None));
    pages::each(client, |page| every.list(page), all, Budget::of, |budget| budgets.see(budget)).await?;
    Ok((fleet, budgets))
}

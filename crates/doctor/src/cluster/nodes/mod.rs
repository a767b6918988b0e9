//! Which nodes could not be drained in two minutes right now, and because of which pod or budget.
//!
//! * `fleet`: which nodes are Spillway's to drain (pure)
//! * `tags`: which of them a tag says to be somebody else's
//! * `planned`: which of them keep the taint of maintenance that is gone
//! * `budgets`: which pods each budget covers, and whether it lets one go (pure)
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
mod planned;
mod rehearsal;
mod survey;
mod tags;
mod verdict;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use kube::api::ListParams;
use spillway_core::cluster::ClusterName;
use spillway_core::drain::deadline::MARGIN;
use spillway_core::invocation::Invocation;
use spillway_core::kube::pod::Pod;
use spillway_drainer::Context;
use spillway_drainer::kube::ApiError;
use spillway_notice::spot;
use spillway_settings::Settings;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use super::rights::{self, Evictions};
use super::{Looked, cordon};
use crate::catalogue::CheckId;
use crate::report::Check;
use budgets::{ClusterBudgets, ListedBudget};
use findings::Circumstances;
use fleet::{Fleet, ListedNode};
use pages::Pages;
use rehearsal::Rehearsal;
use survey::Survey;
use verdict::Pods;

/// Pods that a drain finds on a node and that still run.
const RUNNING: &str = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

/// Looks at all nodes, budgets and pods until `end`.
pub(super) async fn look(
    client: &Client,
    context: &Context,
    cluster: &ClusterName,
    evictions: Evictions,
    invocation: &Invocation,
    end: Instant,
) -> Looked {
    let (settings, clock) = (&context.settings, invocation.clock);
    match fleet_and_budgets(client, settings, end).await {
        Ok((fleet, budgets)) => {
            let ours = fleet.ours.iter().map(AsRef::as_ref);
            let region = &invocation.home.region;
            let mut tagged = tags::look(&context.ec2, cluster, &fleet.unowned, region, end).await;
            tagged.extend(planned::look(context, &fleet.tainted, end).await);
            let cordon = cordon::look(client, settings, ours, &invocation.request_id, end).await;
            let window = spot::NOTICE.unsigned_abs().saturating_sub(MARGIN);
            let mut survey = Survey::new(&fleet, &budgets, window, clock.now());
            let seen = see_pods(client, &mut survey, end).await;
            let rehearsal = match evictions {
                Evictions::Allowed => rehearsal::hold(client, &mut survey, clock, end).await,
                Evictions::Denied => Rehearsal::LeftOut,
            };
            survey.hold_by_few_allowed();
            // What nobody says is told with the other rights.
            if survey.has_jobs_behind_budgets() && rights::can_tell_jobs(client, end).await.unwrap_or(true) {
                survey.jobs_are_told();
            }
            let circumstances = Circumstances { window, budgets: &budgets, hook_wait: settings.hook_max_wait };
            let verdict = verdict::check(&fleet, &survey, circumstances, &Pods { seen, rehearsal }, tagged);
            Looked { checks: vec![cordon, verdict], nodes: fleet.ours.len() }
        }
        Err(error) => {
            let why = format!("the cluster's nodes were not looked at: {}", chain(&error));
            Looked { checks: vec![Check::unknown(CheckId::Nodes, why)], nodes: 0 }
        }
    }
}

async fn fleet_and_budgets(
    client: &Client,
    settings: &Settings,
    end: Instant,
) -> Result<(Fleet, ClusterBudgets), ApiError> {
    let (mut fleet, mut budgets) = (Fleet::new(settings), ClusterBudgets::default());
    let mut nodes = Pages::<ListedNode>::of::<Node>(client, ListParams::default(), end);
    while let Some(page) = nodes.next().await? {
        for ListedNode { metadata, spec } in page {
            fleet.see(&metadata);
            fleet.see_taints(&metadata.name, &spec);
        }
    }
    let mut every_budget = Pages::<ListedBudget>::of::<PodDisruptionBudget>(client, ListParams::default(), end);
    while let Some(page) = every_budget.next().await? {
        for budget in page {
            budgets.see(budget);
        }
    }
    Ok((fleet, budgets))
}

/// Takes the pods that run into the survey, as far as they can be listed.
async fn see_pods(client: &Client, survey: &mut Survey<'_>, end: Instant) -> Result<(), ApiError> {
    let mut pods = Pages::<Pod>::of::<Pod>(client, ListParams::default().fields(RUNNING), end);
    while let Some(page) = pods.next().await? {
        for pod in &page {
            survey.see(pod);
        }
    }
    Ok(())
}

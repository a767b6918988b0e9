//! Finds nodes that could not be drained in two minutes right now, and the pods or budgets that prevent the drain.
//!
//! Keeps only the needed fields of each object, so that a cluster of 5,000 nodes fits into memory.

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
use super::{ClusterChecks, cordon};
use crate::catalogue::CheckId;
use crate::report::Check;
use budgets::{ClusterBudgets, ListedBudget};
use findings::Circumstances;
use fleet::{Fleet, ListedNode};
use pages::Pages;
use rehearsal::Rehearsal;
use survey::Survey;
use verdict::Pods;

/// Field selector for pods that are on a node and have not finished.
const RUNNING: &str = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

pub(super) async fn run_check(
    client: &Client,
    context: &Context,
    cluster: &ClusterName,
    evictions: Evictions,
    invocation: &Invocation,
    end: Instant,
) -> ClusterChecks {
    let (settings, clock) = (&context.settings, invocation.clock);
    match fleet_and_budgets(client, settings, end).await {
        Ok((fleet, budgets)) => {
            let ours = fleet.ours.iter().map(AsRef::as_ref);
            let region = &invocation.home.region;
            let mut tagged = tags::run_check(&context.ec2, cluster, &fleet.unowned, region, end).await;
            tagged.extend(planned::run_check(context, &fleet.tainted, end).await);
            let cordon = cordon::run_check(client, settings, ours, &invocation.request_id, end).await;
            let window = spot::NOTICE.unsigned_abs().saturating_sub(MARGIN);
            let mut survey = Survey::new(&fleet, &budgets, window, clock.now());
            let listed = add_pods(client, &mut survey, end).await;
            let rehearsal = match evictions {
                Evictions::Allowed => rehearsal::rehearse(client, &mut survey, clock, end).await,
                Evictions::Denied => Rehearsal::Skipped,
            };
            survey.record_slow_budgets();
            // A failed review counts as allowed here: the check of the rights reports the failure.
            if survey.has_jobs_behind_budgets() && rights::may_set_disruption_target(client, end).await.unwrap_or(true)
            {
                survey.clear_jobs();
            }
            let circumstances = Circumstances { window, budgets: &budgets, hook_wait: settings.hook_max_wait };
            let verdict = verdict::check(&fleet, &survey, circumstances, &Pods { listed, rehearsal }, tagged);
            ClusterChecks { checks: vec![cordon, verdict], nodes: fleet.ours.len() }
        }
        Err(error) => {
            let why = format!("cannot list the nodes of the cluster: {}", chain(&error));
            ClusterChecks { checks: vec![Check::unknown(CheckId::Nodes, why)], nodes: 0 }
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
            fleet.add(&metadata);
            fleet.add_if_planned(&metadata.name, &spec);
        }
    }
    let mut every_budget = Pages::<ListedBudget>::of::<PodDisruptionBudget>(client, ListParams::default(), end);
    while let Some(page) = every_budget.next().await? {
        for budget in page {
            budgets.add(budget);
        }
    }
    Ok((fleet, budgets))
}

/// Adds all unfinished pods to the survey. If a page fails, pods of earlier pages stay in the survey.
async fn add_pods(client: &Client, survey: &mut Survey<'_>, end: Instant) -> Result<(), ApiError> {
    let mut pods = Pages::<Pod>::of::<Pod>(client, ListParams::default().fields(RUNNING), end);
    while let Some(page) = pods.next().await? {
        for pod in &page {
            survey.add(pod);
        }
    }
    Ok(())
}

//! What is done about an interruption: a file for each act that the decision may name.

mod check;
mod claim;
mod complete;
mod cordon;
mod drain;
mod dry_run;
mod find;
mod node_claim;
mod out_of_service;
mod ready;
mod schedule;
mod several;
mod stranded;
mod undo;
mod unfinished;

use spillway_eks::ClusterName;

use crate::failure::Failure;
use crate::kubernetes::ApiError;

fn cannot(doing: String, cluster: &ClusterName, error: ApiError) -> Failure {
    Failure::Kubernetes { doing, cluster: cluster.clone(), error }
}

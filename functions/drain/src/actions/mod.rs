//! What is done about a notice: a file for each act that the decision may name.

mod claim;

mod cordon;
mod drain;
mod dry_run;
mod fan_out;
mod find;
mod launch;
mod lifecycle;
mod node_claim;
mod out_of_service;
mod postpone;
mod stranded;
mod uncordon;
mod undo_check;
mod unfinished;

use spillway_eks::ClusterName;

use crate::failure::Failure;
use crate::kube::ApiError;

fn cannot(doing: String, cluster: &ClusterName, error: ApiError) -> Failure {
    Failure::Kubernetes { doing, cluster: cluster.clone(), error }
}

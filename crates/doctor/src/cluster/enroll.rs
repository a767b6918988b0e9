//! The command that lets Spillway into a cluster, for findings about what it lacks there.

use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;

use crate::report::quoted;

/// `tools/spillway enroll` for one cluster. `stack` is the function's own; empty when nobody has told it.
pub(super) fn command(cluster: &ClusterName, stack: &str, invocation: &Invocation) -> String {
    let of_stack = if stack.is_empty() { String::new() } else { format!(" --stack {}", quoted(stack)) };
    format!("tools/spillway enroll{of_stack} --region {} --cluster {}", invocation.home.region, quoted(cluster))
}

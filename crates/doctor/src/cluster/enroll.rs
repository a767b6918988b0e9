//! Enroll command in findings about missing rights.

use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;

use crate::report::quoted;

/// `tools/spillway enroll` for one cluster. `stack` is empty if unknown.
pub(super) fn command(cluster: &ClusterName, stack: &str, invocation: &Invocation) -> String {
    let of_stack = if stack.is_empty() { String::new() } else { format!(" --stack {}", quoted(stack)) };
    format!("tools/spillway enroll{of_stack} --region {} --cluster {}", invocation.home.region, quoted(cluster))
}

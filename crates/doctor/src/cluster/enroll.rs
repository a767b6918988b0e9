//! Builds the command `tools/spillway enroll` for findings about the sign-in and about missing rights.

use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;

use crate::report::quoted;

/// Returns the `enroll` command for one cluster. `stack` is empty if the stack's name is unknown.
pub(super) fn command(cluster: &ClusterName, stack: &str, invocation: &Invocation) -> String {
    let of_stack = if stack.is_empty() { String::new() } else { format!(" --stack {}", quoted(stack)) };
    format!("tools/spillway enroll{of_stack} --region {} --cluster {}", invocation.home.region, quoted(cluster))
}

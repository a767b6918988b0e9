//! The node of an instance: its observed state, its claim, and its uncordon.
//!
//! * `claimant`: request for a claim, and its result
//! * `unclaimed`: reason not to claim a node
//! * `claim_annotation`: the annotation with the claim and its marks
//! * `observed`: state of a node, and the claim that it allows
//! * `patch`: operations of a JSON patch
//! * `taint`: taint for each kind of notice
//! * `labels`: opt-out and owner by the node's labels
//! * `readiness`: readiness of a node for pods
//! * `pace`: limit of planned drains at once
//! * `cordon_again`: repeated cordon of a node that was uncordoned during its drain
//! * `uncordon`: removal of our marks
//! * `out_of_service`: taint of a node that is out of service
//! * `node_claim`: deletion of a node's `NodeClaim`

pub mod claim_annotation;
pub mod claimant;
pub mod cordon_again;
pub mod labels;
pub mod node_claim;
pub mod observed;
pub mod out_of_service;
pub mod pace;
pub mod patch;
pub mod readiness;
pub mod taint;
#[cfg(test)]
mod tests;
pub mod unclaimed;
pub mod uncordon;

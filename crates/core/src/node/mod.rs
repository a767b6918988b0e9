//! The node of an instance: what is observed of it, what a claim writes, and when it is given back.
//!
//! * `claimant`: who claims, with what, and how it went
//! * `unclaimed`: why a node is not claimed
//! * `claim_annotation`: the annotation that says whose claim it is and what is to be taken away again
//! * `observed`: what a claim finds on a node, and what follows
//! * `patch`: the operations of a JSON patch
//! * `taint`: the taint for each kind of notice
//! * `labels`: what a node's labels say
//! * `readiness`: whether pods can come to a node
//! * `pace`: whether a drain gives way to others
//! * `cordon_again`: whether a node that somebody has uncordoned in mid-drain is cordoned again
//! * `uncordon`: what is taken off a node that is given back
//! * `out_of_service`: the taint that declares a node out of service
//! * `node_claim`: what came of handing a node to Karpenter

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

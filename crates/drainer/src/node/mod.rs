//! The node of an instance: found, claimed, and given back.
//!
//! * `find`: by the names that EKS gives nodes, then by the provider id
//! * `claimant`: who claims, with what, and how it went
//! * `claim`: the one patch that makes a node ours
//! * `observed`: what a claim finds on a node, and what follows (pure)
//! * `claim_annotation`: the annotation that says whose claim it is and what is to be taken away again (pure)
//! * `watch`: whether a claim still counts while its drain goes on
//! * `taint`: the taint for each kind of notice (pure)
//! * `labels`: what a node's labels say (pure)
//! * `readiness`: whether pods can come to a node (pure)
//! * `uncordon`: giving a node back
//! * `out_of_service`: declaring a node out of service
//! * `patch`: JSON patches of a node

mod claim;
mod claim_annotation;
mod claimant;
mod find;
mod labels;
#[cfg(test)]
mod model;
pub(crate) mod node_claim;
mod observed;
pub(crate) mod out_of_service;
mod patch;
pub(crate) mod readiness;
pub(crate) mod taint;
pub(crate) mod uncordon;
mod watch;

pub(crate) use claim::{claim, rehearse};
pub(crate) use claim_annotation::ClaimAnnotation;
pub(crate) use claimant::{Claim, Claimant, How, Unclaimed};
pub(crate) use find::{by_likely_names, find, is_of};
pub(crate) use labels::{left_alone, managed_by};
pub(crate) use watch::{NodeWatch, ObservedNodeChange, until_given_back};

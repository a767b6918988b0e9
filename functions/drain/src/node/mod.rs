//! The node of an instance: found, claimed, and given back.
//!
//! * `find`: by the names that EKS gives nodes, then by the provider id
//! * `claimant`: who claims, with what, and how it went
//! * `claim`: the one patch that makes a node ours
//! * `seen`: what a claim finds on a node, and what follows (pure)
//! * `mark`: the annotation that says whose claim it is and what is to be taken away again (pure)
//! * `given_back`: whether a claim still counts while its drain goes on
//! * `taint`: the taint for each kind of notice (pure)
//! * `labels`: what a node's labels say (pure)
//! * `readiness`: whether pods can come to a node (pure)
//! * `undo`: giving a node back
//! * `out_of_service`: declaring a node out of service
//! * `patch`: JSON patches of a node

mod claim;
mod claimant;
mod find;
mod given_back;
mod labels;
mod mark;
#[cfg(test)]
mod model;
pub(crate) mod out_of_service;
mod patch;
pub(crate) mod readiness;
mod seen;
pub(crate) mod taint;
pub(crate) mod undo;

pub(crate) use claim::claim;
pub(crate) use claimant::{Claim, Claimant, How, Unclaimed};
pub(crate) use find::{by_likely_names, by_name, find, likely_name};
pub(crate) use given_back::until_given_back;
pub(crate) use labels::{left_alone, owner};
pub(crate) use mark::Mark;

//! Rules for claiming, cordoning and uncordoning the node of an instance.

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
pub mod unclaimed;
pub mod uncordon;

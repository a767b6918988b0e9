//! Fields of a `PodDisruptionBudget` that a drain reads.

use k8s_openapi::api::policy::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Deserialize;

use super::metadata::{metadata, object_of_kind};

/// A `PodDisruptionBudget` with only the fields that Spillway reads.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct DisruptionBudget {
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: BudgetSpec,
    pub status: Option<BudgetStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct BudgetSpec {
    pub selector: Option<LabelSelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    #[serde(default)]
    pub disruptions_allowed: i32,
    pub observed_generation: Option<i64>,
}

object_of_kind!(DisruptionBudget, v1::PodDisruptionBudget);

//! Name of an EKS cluster.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(String);

impl ClusterName {
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Returns `true` if EKS accepts `name` as a cluster name (EKS API reference, `CreateCluster`).
    #[must_use]
    pub fn is_possible(name: &str) -> bool {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        name.len() <= 100 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_legal)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

//! What a connection needs to know of a cluster.

use spillway_core::cluster::ClusterName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub name: ClusterName,
    /// The `https` URL of its API server.
    pub endpoint: String,
    /// The PEM of its certificate authority: one certificate, or two during a rotation.
    pub ca: Vec<u8>,
}

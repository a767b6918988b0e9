//! What a connection needs to know of a cluster.

use spillway_core::cluster::ClusterName;

/// What a connection needs to know of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Its name, which every token is signed for.
    pub name: ClusterName,
    /// The `https` URL of its API server.
    pub endpoint: String,
    /// The PEM of its certificate authority: one certificate, or two during a rotation.
    pub ca: Vec<u8>,
}

//! etcd, without the disk syncs that a throwaway world does not need.

use std::time::Duration;

use tokio::net::TcpStream;

use crate::error::BedError;
use crate::layout::ClusterLayout;

pub(super) async fn start(cluster: &ClusterLayout<'_>) -> Result<(), BedError> {
    let clients = format!("http://127.0.0.1:{}", cluster.ports.etcd);
    let peers = format!("http://127.0.0.1:{}", cluster.ports.etcd_peers);
    let program = cluster.program("etcd").args([
        "--name=bed".to_owned(),
        format!("--data-dir={}", cluster.path("etcd").display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=bed={peers}"),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]);
    let etcd = cluster.processes.start(program)?;
    // It listens once it can answer.
    let connect = || TcpStream::connect(("127.0.0.1", cluster.ports.etcd));
    cluster.processes.until_ready(&etcd, Duration::from_secs(30), connect).await.map(drop)
}

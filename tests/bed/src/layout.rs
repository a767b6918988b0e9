//! Folder, processes and clusters of a world that starts.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use crate::certs::Authority;
use crate::error::BedError;
use crate::leash::Leash;
use crate::processes::{Processes, Program};
use crate::setup::Setup;
use crate::world::WorldOptions;

pub(crate) const REGION: &str = "us-east-1";
pub(crate) const ACCOUNT: &str = "123456789012";

#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) dir: PathBuf,
    pub(crate) logs: PathBuf,
    pub(crate) setup: Setup,
    pub(crate) options: WorldOptions,
    pub(crate) processes: Processes,
}

impl Layout {
    /// The leash removes the folder.
    pub(crate) fn new(options: WorldOptions, leash: &Arc<Leash>) -> Result<Self, BedError> {
        let setup = Setup::find()?;
        let making = || BedError::io("make the test bed's folder");
        let dir = TempDir::with_prefix("spillway-bed-").map_err(making())?.keep();
        leash.remove(&dir);
        let logs = dir.join("logs");
        std::fs::create_dir(&logs).map_err(making())?;
        let processes = Processes::new(&dir, Arc::clone(leash));
        Ok(Self { dir, logs, setup, options, processes })
    }

    pub(crate) fn clusters(&self) -> Result<Vec<ClusterLayout<'_>>, BedError> {
        let names = &self.options.clusters;
        let ports = free_ports(names.len()).map_err(BedError::io("find free ports"))?;
        let mut modes = self.options.unprepared.iter();
        names.iter().zip(ports).map(|(name, ports)| ClusterLayout::new(self, name, modes.next(), ports)).collect()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Folder, logs, ports and authority of one cluster.
#[derive(Debug)]
pub(crate) struct ClusterLayout<'a> {
    pub(crate) name: &'a str,
    /// EKS' authentication mode of a cluster that is not enrolled.
    pub(crate) unprepared: Option<&'a str>,
    pub(crate) options: &'a WorldOptions,
    pub(crate) processes: &'a Processes,
    pub(crate) logs: PathBuf,
    pub(crate) ports: Ports,
    pub(crate) authority: Authority,
    /// File to which the AWS side writes EKS' access entries.
    pub(crate) access_entries: PathBuf,
    setup: &'a Setup,
    folder: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peers: u16,
    pub(crate) api_server: u16,
    pub(crate) authenticator: u16,
}

impl<'a> ClusterLayout<'a> {
    fn new(layout: &'a Layout, name: &'a str, unprepared: Option<&'a String>, ports: Ports) -> Result<Self, BedError> {
        let (folder, logs) = (layout.path("clusters").join(name), layout.logs.join(name));
        for folder in [&folder, &logs] {
            std::fs::create_dir_all(folder).map_err(BedError::io(format!("make the folders of cluster {name}")))?;
        }
        let authority = Authority::new(&format!("spillway test bed, cluster {name}"))?;
        let Layout { options, processes, setup, .. } = layout;
        let access_entries = layout.path("aws").join("access").join(format!("{name}.json"));
        let unprepared = unprepared.map(String::as_str);
        Ok(Self { name, unprepared, options, processes, logs, ports, authority, access_entries, setup, folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, BedError> {
        let path = self.path(name);
        std::fs::write(&path, text).map_err(BedError::io(format!("write {}", path.display())))?;
        Ok(path)
    }

    pub(crate) fn program(&self, name: &'static str) -> Program {
        Program::new(name, self.setup.program(name), &self.logs)
    }
}

/// Below the ports that Linux and macOS give to connections: another test's connection could take one of those before the
/// bed's program listens.
const PORTS: Range<u16> = 10_000..32_768;
const TRIES_PER_PORT: usize = 100;

/// All ports are held at once, so that no two are the same.
fn free_ports(clusters: usize) -> std::io::Result<Vec<Ports>> {
    let held: Vec<TcpListener> = (0..clusters * 4).map(|_| free_port()).collect::<std::io::Result<_>>()?;
    let ports = held.iter().map(|listener| Ok(listener.local_addr()?.port()));
    let ports = ports.collect::<std::io::Result<Vec<u16>>>()?;
    let of_cluster =
        |ports: &[u16]| Ports { etcd: ports[0], etcd_peers: ports[1], api_server: ports[2], authenticator: ports[3] };
    Ok(ports.chunks(4).map(of_cluster).collect())
}

fn free_port() -> std::io::Result<TcpListener> {
    let mut tried = (0..TRIES_PER_PORT).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, fastrand::u16(PORTS))));
    tried.find(Result::is_ok).unwrap_or_else(|| Err(std::io::ErrorKind::AddrInUse.into()))
}

//! What every part of a starting world needs: its folder and its processes, and what each cluster has to itself.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::certs::Authority;
use crate::error::BedError;
use crate::processes::{Processes, Program};
use crate::setup::Setup;
use crate::world::WorldOptions;

pub(crate) const REGION: &str = "us-east-1";
pub(crate) const ACCOUNT: &str = "123456789012";

#[derive(Debug)]
pub(crate) struct Layout {
    folder: TempDir,
    pub(crate) logs: PathBuf,
    pub(crate) setup: Setup,
    pub(crate) options: WorldOptions,
    pub(crate) processes: Processes,
}

impl Layout {
    pub(crate) fn new(options: WorldOptions) -> Result<Self, BedError> {
        let setup = Setup::find()?;
        let make = BedError::io("make the test bed's folder");
        let folder = TempDir::with_prefix("spillway-bed-").map_err(make)?;
        let logs = folder.path().join("logs");
        std::fs::create_dir(&logs).map_err(BedError::io("make the folder for logs"))?;
        let processes = Processes::new(folder.path());
        Ok(Self { folder, logs, setup, options, processes })
    }

    /// A place for each cluster.
    pub(crate) fn clusters(&self) -> Result<Vec<ClusterLayout<'_>>, BedError> {
        let names = &self.options.clusters;
        let ports = free_ports(names.len()).map_err(BedError::io("find free ports"))?;
        let mut modes = self.options.unprepared.iter();
        names.iter().zip(ports).map(|(name, ports)| ClusterLayout::new(self, name, modes.next(), ports)).collect()
    }

    pub(crate) fn dir(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Removes the folder, all of it but the logs when those are wanted; answers where they are.
    pub(crate) fn remove(self, keep_logs: bool) -> Result<Option<PathBuf>, BedError> {
        let removing = || BedError::io("remove the test bed's folder");
        let any_logs = self.logs.read_dir().map_err(removing())?.next().is_some();
        if !keep_logs || !any_logs {
            return self.folder.close().map(|()| None).map_err(removing());
        }
        let folder = self.folder.keep();
        for entry in folder.read_dir().map_err(removing())? {
            let path = entry.map_err(removing())?.path();
            let removed = match path.is_dir() {
                true if path == self.logs => Ok(()),
                true => std::fs::remove_dir_all(&path),
                false => std::fs::remove_file(&path),
            };
            removed.map_err(removing())?;
        }
        Ok(Some(self.logs))
    }
}

/// One cluster's own: folder, logs, ports and authority.
#[derive(Debug)]
pub(crate) struct ClusterLayout<'a> {
    pub(crate) name: &'a str,
    /// How it lets roles in, in EKS' words, if nobody has enrolled it.
    pub(crate) unprepared: Option<&'a str>,
    pub(crate) options: &'a WorldOptions,
    pub(crate) processes: &'a Processes,
    pub(crate) logs: PathBuf,
    pub(crate) ports: Ports,
    pub(crate) authority: Authority,
    /// Where the AWS side writes whom EKS' access entries let in.
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
        write(self.path(name), text)
    }

    pub(crate) fn program(&self, name: &'static str) -> Program {
        Program::new(name, self.setup.program(name), &self.logs)
    }
}

fn write(path: PathBuf, text: &str) -> Result<PathBuf, BedError> {
    std::fs::write(&path, text).map_err(BedError::io(format!("write {}", path.display())))?;
    Ok(path)
}

/// Below those that Linux and macOS give to connections: until a program of the bed listens, one of the many other tests' might
/// take its port.
const PORTS: Range<u16> = 10_000..32_768;
/// How many ports are tried for one: most are free.
const TRIES: usize = 100;

/// All are held at once, so that no two are the same.
fn free_ports(clusters: usize) -> std::io::Result<Vec<Ports>> {
    let held: Vec<TcpListener> = (0..clusters * 4).map(|_| free_port()).collect::<std::io::Result<_>>()?;
    let ports: Vec<u16> =
        held.iter().map(|listener| Ok(listener.local_addr()?.port())).collect::<std::io::Result<_>>()?;
    let (of_clusters, _) = ports.as_chunks();
    let ports = of_clusters.iter().map(|&[etcd, etcd_peers, api_server, authenticator]| Ports {
        etcd,
        etcd_peers,
        api_server,
        authenticator,
    });
    Ok(ports.collect())
}

fn free_port() -> std::io::Result<TcpListener> {
    let mut tried = (0..TRIES).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, fastrand::u16(PORTS))));
    tried.find(Result::is_ok).unwrap_or_else(|| Err(std::io::ErrorKind::AddrInUse.into()))
}

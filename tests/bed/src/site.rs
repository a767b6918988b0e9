//! What every part of a starting world needs: its folder, its ports, its processes.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::BedError;
use crate::processes::{Processes, Program};
use crate::setup::Setup;
use crate::world::WorldOptions;

pub(crate) const REGION: &str = "us-east-1";
pub(crate) const ACCOUNT: &str = "123456789012";
pub(crate) const CLUSTER: &str = "bed";

#[derive(Debug)]
pub(crate) struct Site {
    folder: TempDir,
    pub(crate) logs: PathBuf,
    pub(crate) setup: Setup,
    pub(crate) ports: Ports,
    pub(crate) options: WorldOptions,
    pub(crate) processes: Processes,
}

#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peers: u16,
    pub(crate) api_server: u16,
    pub(crate) authenticator: u16,
}

impl Site {
    pub(crate) fn new(options: WorldOptions) -> Result<Self, BedError> {
        let setup = Setup::find()?;
        let make = BedError::io("make the test bed's folder");
        let folder = TempDir::with_prefix("spillway-bed-").map_err(make)?;
        let logs = folder.path().join("logs");
        std::fs::create_dir(&logs).map_err(BedError::io("make the folder for logs"))?;
        let ports = Ports::free().map_err(BedError::io("find free ports"))?;
        let processes = Processes::new(folder.path(), &logs);
        Ok(Self { folder, logs, setup, ports, options, processes })
    }

    pub(crate) fn dir(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, BedError> {
        let path = self.path(name);
        std::fs::write(&path, text).map_err(BedError::io(format!("write {}", path.display())))?;
        Ok(path)
    }

    pub(crate) fn program(&self, name: &'static str) -> Program {
        Program::new(name, self.setup.program(name))
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

impl Ports {
    /// All are held at once, so that no two are the same.
    fn free() -> std::io::Result<Self> {
        let held = [0; 4].map(|any| TcpListener::bind((Ipv4Addr::LOCALHOST, any)));
        let [etcd, etcd_peers, api_server, authenticator] = held.map(|listener| listener?.local_addr());
        Ok(Self {
            etcd: etcd?.port(),
            etcd_peers: etcd_peers?.port(),
            api_server: api_server?.port(),
            authenticator: authenticator?.port(),
        })
    }
}

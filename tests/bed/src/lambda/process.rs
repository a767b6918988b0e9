//! The function's process: start, freeze, thaw, kill, and the lines that it writes.
//!
//! A frozen process does not notice the end of its parent, so each has a [`Leash`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

use crate::leash::Leash;

/// Ids of the live processes of a function.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveProcesses(Arc<Mutex<Vec<u32>>>);

impl LiveProcesses {
    pub(super) fn ids(&self) -> Vec<u32> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct FunctionProcess {
    child: Child,
    id: u32,
    frozen: bool,
    /// Unread part of both output streams.
    output: File,
    leash: Leash,
    live: LiveProcesses,
    pub(super) started: Instant,
}

impl FunctionProcess {
    /// Executes a binary with exactly these variables, in a process group of its own.
    pub(super) fn start(binary: &Path, variables: BTreeMap<String, String>, live: LiveProcesses) -> io::Result<Self> {
        // Before the process: the start of a shell would count as the function's own.
        let leash = Leash::start()?;
        // Both streams in one file without a name, so that their lines stay in order.
        let file = NamedTempFile::new()?;
        let (output, writer) = (file.reopen()?, file.into_file());
        let mut command = Command::new(binary);
        command
            .env_clear()
            .envs(variables)
            .current_dir(binary.parent().unwrap_or(Path::new("/")))
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .kill_on_drop(true);
        let started = Instant::now();
        let child = command.spawn()?;
        let id = child.id().expect("the child has not been waited for");
        leash.watch(id);
        live.lock().push(id);
        Ok(Self { child, id, frozen: false, output, leash, live, started })
    }

    pub(super) fn freeze(&mut self) {
        if !std::mem::replace(&mut self.frozen, true) {
            self.signal(Signal::SIGSTOP);
        }
    }

    pub(super) fn thaw(&mut self) {
        if std::mem::take(&mut self.frozen) {
            self.signal(Signal::SIGCONT);
        }
    }

    /// Waits for the end of the process.
    pub(super) async fn exit(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.leash.release();
        Ok(status)
    }

    pub(super) async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::SIGKILL);
        self.exit().await
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Lines written since the last call.
    pub(super) fn take_lines(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        self.output.read_to_end(&mut bytes).expect("a file of this program is readable");
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    /// Signals the whole group: children of the process freeze and die with it.
    fn signal(&self, signal: Signal) {
        // After a wait the id may be another process'.
        if self.child.id().is_some() {
            let group = i32::try_from(self.id).expect("a process id is a positive i32");
            // Fails if the process has just ended, which the next wait reports.
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }
}

impl Drop for FunctionProcess {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        self.leash.release();
        self.live.lock().retain(|other| *other != self.id);
    }
}

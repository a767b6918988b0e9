//! The function's process: start, freeze, thaw, kill, and the lines it writes.
//!
//! It can be stopped when its parent dies, and a stopped process notices nothing. So each has a
//! watcher, a shell that reads a pipe from this program: when the pipe closes unannounced, however
//! this program ended, the watcher kills. It costs the function's own start nothing, which a
//! program in between would.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStdin, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// The processes that live.
#[derive(Debug, Clone, Default)]
pub(super) struct Roll(Arc<Mutex<Vec<u32>>>);

impl Roll {
    pub(super) fn ids(&self) -> Vec<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn enter(&self, id: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    fn leave(&self, id: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| *other != id);
    }
}

#[derive(Debug)]
pub(super) struct FunctionProcess {
    child: Child,
    id: u32,
    frozen: bool,
    output: Output,
    watcher: Watcher,
    roll: Roll,
    pub(super) started: (Timestamp, Instant),
}

impl FunctionProcess {
    /// Executes a binary with exactly these variables, in a process group of its own.
    pub(super) fn start(binary: &Path, variables: BTreeMap<String, String>, roll: Roll) -> io::Result<Self> {
        let mut watcher = Watcher::start()?;
        // Both streams into one pipe, so that their lines stay in order.
        let (reader, writer) = io::pipe()?;
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
        let output = Output::read(reader)?;

        let started = (Timestamp::now(), Instant::now());
        let child = command.spawn()?;
        let id = child.id().expect("nobody has waited for it yet");
        watcher.watch(id)?;
        roll.enter(id);
        Ok(Self { child, id, frozen: false, output, watcher, roll, started })
    }

    pub(super) fn freeze(&mut self) {
        if !self.frozen {
            self.frozen = true;
            self.signal(Signal::SIGSTOP);
        }
    }

    pub(super) fn thaw(&mut self) {
        if self.frozen {
            self.frozen = false;
            self.signal(Signal::SIGCONT);
        }
    }

    /// Waits for the end of the process.
    pub(super) async fn exit(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.watcher.dismiss();
        Ok(status)
    }

    pub(super) async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::SIGKILL);
        self.exit().await
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The lines written since the last time.
    pub(super) fn take_lines(&self) -> Vec<String> {
        self.output.take_lines()
    }

    /// To the whole group: what the process has started freezes and dies with it.
    fn signal(&self, signal: Signal) {
        // Only while nobody has waited for it: afterwards its id may be another's.
        if self.child.id().is_some() {
            let group = i32::try_from(self.id).expect("a process id is a positive i32");
            // A process that has just ended is no error; whoever waits for it will see.
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }
}

impl Drop for FunctionProcess {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        self.watcher.dismiss();
        self.roll.leave(self.id);
    }
}

/// What a process writes, line by line.
#[derive(Debug)]
struct Output {
    unread: Arc<Mutex<Unread>>,
    reader: JoinHandle<()>,
}

/// What was written and nobody has taken: some here, the rest still in the pipe.
#[derive(Debug)]
struct Unread {
    bytes: Vec<u8>,
    pipe: File,
}

impl Output {
    fn read(end: io::PipeReader) -> io::Result<Self> {
        // Two handles on the pipe: one tells when there is something, the other looks at once.
        let pipe = File::from(OwnedFd::from(end.try_clone()?));
        let arrivals = pipe::Receiver::from_owned_fd(end.into())?;
        let unread = Arc::new(Mutex::new(Unread { bytes: Vec::new(), pipe }));
        let reader = tokio::spawn(keep_empty(arrivals, Arc::clone(&unread)));
        Ok(Self { unread, reader })
    }

    /// All lines that were written before this call.
    fn take_lines(&self) -> Vec<String> {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        let Unread { bytes, pipe } = &mut *unread;
        // It ends with an error when the pipe is empty; what was read until then is in `bytes`.
        let _ = pipe.read_to_end(bytes);
        String::from_utf8_lossy(&std::mem::take(bytes)).lines().map(str::to_owned).collect()
    }
}

/// Empties the pipe all the time: a full one would stop the process.
async fn keep_empty(arrivals: pipe::Receiver, unread: Arc<Mutex<Unread>>) {
    let mut chunk = vec![0; 64 * 1024];
    while arrivals.readable().await.is_ok() {
        // Nothing comes between reading and keeping, so the order holds.
        let mut unread = unread.lock().unwrap_or_else(PoisonError::into_inner);
        match arrivals.try_read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => unread.bytes.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Kills a process when this program has ended without saying so.
#[derive(Debug)]
struct Watcher {
    leash: ChildStdin,
}

impl Watcher {
    fn start() -> io::Result<Self> {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "read -r id && { read -r _ || kill -s KILL -- \"-$id\"; }"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C and a kill of the whole group are not for the watcher.
            .process_group(0)
            .spawn()?;
        let leash = shell.stdin.take().expect("stdin is piped");
        std::thread::spawn(move || shell.wait());
        Ok(Self { leash })
    }

    fn watch(&mut self, id: u32) -> io::Result<()> {
        writeln!(self.leash, "{id}")
    }

    /// The process is dead, or about to be.
    fn dismiss(&mut self) {
        // A watcher that was dismissed before is gone.
        let _ = writeln!(self.leash, "dismissed");
    }
}

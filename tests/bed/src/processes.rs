//! The programs of a world: each guarded, in a process group of its own, with a log file.
//!
//! They are stopped in the reverse order of their start: an API server that outlives its etcd
//! hangs, and a folder must not be removed under a living etcd.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::error::BedError;

const TAIL_LINES: usize = 15;
/// Between two looks at a program that is coming up; nothing tells of that moment.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Lives on one thread, the supervisor's.
#[derive(Debug)]
pub(crate) struct Processes {
    folder: PathBuf,
    running: RefCell<Vec<Process>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Process {
    program: Program,
    group: Pid,
    exit: watch::Receiver<Option<ExitStatus>>,
}

/// What to run. The caller's environment stays outside: its `KUBECONFIG`, `AWS_*` and proxies are
/// for other places.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    name: &'static str,
    path: PathBuf,
    log: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    nice: u8,
}

impl Program {
    /// Its log file is named after it.
    pub(crate) fn new(name: &'static str, path: PathBuf, logs: &Path) -> Self {
        let log = logs.join(format!("{name}.log"));
        Self { name, path, log, arguments: Vec::new(), environment: Vec::new(), nice: 0 }
    }

    pub(crate) fn args<S: Into<OsString>>(mut self, more: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(more.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// How far it stands back behind the others while all want the processors.
    pub(crate) fn nice(mut self, nice: u8) -> Self {
        self.nice = nice;
        self
    }
}

impl Processes {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), running: RefCell::default() }
    }

    pub(crate) fn start(&self, program: Program) -> Result<Process, BedError> {
        let Program { name: _, path, log, arguments, environment, nice } = &program;
        let starting = || format!("start {}", path.display());
        let output = File::options().create(true).append(true).open(log);
        let output = output.map_err(BedError::io(format!("create {}", log.display())))?;
        let errors = output.try_clone().map_err(BedError::io(starting()))?;

        let mut command = Command::new(std::env::current_exe().map_err(BedError::io(starting()))?);
        command
            .arg("guard")
            .arg(std::process::id().to_string())
            .args(["nice", "-n", &nice.to_string()])
            .arg(path)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C in a terminal goes to the whole group: the order of the end is ours.
            .process_group(0);
        self.give_environment(&mut command, environment);
        let mut child = command.spawn().map_err(BedError::io(starting()))?;

        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let group = Pid::from_raw(id.expect("a child just started has an id"));
        let (ended, exit) = watch::channel(None);
        tokio::spawn(async move {
            let status = child.wait().await;
            ended.send_replace(Some(status.unwrap_or_default()));
        });
        let process = Process { program, group, exit };
        self.running.borrow_mut().push(process.clone());
        Ok(process)
    }

    /// Runs a program to its end.
    pub(crate) async fn run(&self, program: Program) -> Result<(), BedError> {
        let mut process = self.start(program)?;
        let status = process.ended().await;
        self.running.borrow_mut().retain(|other| other.group != process.group);
        if status.success() { Ok(()) } else { Err(process.failed(&format!("failed ({status})"))) }
    }

    /// Asks until the program answers, has ended or `limit` is over.
    pub(crate) async fn until_ready<T, E: std::fmt::Display>(
        &self,
        process: &Process,
        limit: Duration,
        probe: impl AsyncFn() -> Result<T, E>,
    ) -> Result<T, BedError> {
        let deadline = Instant::now() + limit;
        loop {
            let last = match timeout(limit, probe()).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            let status = *process.exit.borrow();
            if let Some(status) = status {
                return Err(process.failed(&format!("ended while starting ({status})")));
            }
            if Instant::now() > deadline {
                let seconds = limit.as_secs();
                return Err(process.failed(&format!("is not ready after {seconds} s ({last})")));
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Resolves when one of them ends by itself, which none should.
    pub(crate) async fn any_failure(&self) -> BedError {
        let mut ends: FuturesUnordered<_> = self
            .running
            .borrow()
            .iter()
            .cloned()
            .map(|mut process| async move {
                let status = process.ended().await;
                process.failed(&format!("ended by itself ({status})"))
            })
            .collect();
        match ends.next().await {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// Nothing here has a state worth an orderly goodbye, and one of them ignores SIGTERM.
    pub(crate) async fn stop(&self) {
        let mut running = self.running.take();
        while let Some(mut process) = running.pop() {
            process.kill().await;
        }
    }

    fn give_environment(&self, command: &mut Command, more: &[(&'static str, OsString)]) {
        let more = more.iter().map(|(name, value)| (name, value));
        command.env_clear().env("HOME", &self.folder).env("TMPDIR", &self.folder).envs(more);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
    }
}

impl Process {
    async fn kill(&mut self) {
        if self.exit.borrow().is_none() {
            // Fails only for a group that is gone, and that is what is wanted.
            let _ = killpg(self.group, Signal::SIGKILL);
            self.ended().await;
        }
    }

    async fn ended(&mut self) -> ExitStatus {
        let ended = self.exit.wait_for(Option::is_some).await;
        ended.ok().and_then(|status| *status).unwrap_or_default()
    }

    fn failed(&self, what: &str) -> BedError {
        let text = std::fs::read(&self.program.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        BedError::Program {
            name: self.program.name.to_owned(),
            what: what.to_owned(),
            log: self.program.log.clone(),
            tail: tail.join("\n"),
        }
    }
}

//! The programs of a world: each in a process group of its own, with a log file.
//!
//! They are stopped in the reverse order of their start: an API server that outlives its etcd hangs.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::error::BedError;
use crate::leash::Leash;

const TAIL_LINES: usize = 15;
/// Pause between two probes of a program that starts.
const PROBE_EVERY: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub(crate) struct Processes {
    folder: PathBuf,
    leash: Arc<Leash>,
    running: RefCell<Vec<Process>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Process {
    name: &'static str,
    log: PathBuf,
    group: Pid,
    exit: watch::Receiver<Option<ExitStatus>>,
}

/// A program with its arguments and variables. The caller's `KUBECONFIG`, `AWS_*` and proxies are not inherited.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    path: PathBuf,
    log: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    nice: u8,
}

impl Program {
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

    pub(crate) fn nice(mut self, nice: u8) -> Self {
        self.nice = nice;
        self
    }
}

impl Processes {
    pub(crate) fn new(folder: &Path, leash: Arc<Leash>) -> Self {
        Self { folder: folder.to_owned(), leash, running: RefCell::default() }
    }

    pub(crate) fn start(&self, program: Program) -> Result<Process, BedError> {
        let Program { name, path, log, arguments, environment, nice } = program;
        let starting = || BedError::io(format!("start {}", path.display()));
        let output = File::options().create(true).append(true).open(&log).map_err(starting())?;
        let errors = output.try_clone().map_err(starting())?;
        let mut command = Command::new("nice");
        command
            .args(["-n", &nice.to_string()])
            .arg(&path)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C in a terminal reaches the whole foreground group; the world decides the order of the end.
            .process_group(0)
            .env_clear()
            .env("HOME", &self.folder)
            .env("TMPDIR", &self.folder)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(environment);
        let mut child = command.spawn().map_err(starting())?;
        let id = child.id().expect("a child just started has an id");
        self.leash.watch(id);
        let group = Pid::from_raw(i32::try_from(id).expect("a process id is a positive i32"));
        let (ended, exit) = watch::channel(None);
        tokio::spawn(async move {
            let status = child.wait().await;
            ended.send_replace(Some(status.unwrap_or_default()));
        });
        let process = Process { name, log, group, exit };
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

    /// Probes until the program answers, has ended or `limit` is over.
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
                return Err(process.failed(&format!("is not ready after {} s ({last})", limit.as_secs())));
            }
            sleep(PROBE_EVERY).await;
        }
    }

    /// Resolves when a program ends by itself.
    pub(crate) async fn any_failure(&self) -> BedError {
        let running = self.running.borrow().clone();
        let ends = running.into_iter().map(|mut process| {
            Box::pin(async move {
                let status = process.ended().await;
                process.failed(&format!("ended by itself ({status})"))
            })
        });
        select_all(ends).await.0
    }

    /// Kills all: none keeps state that outlives the world, and one ignores SIGTERM.
    pub(crate) async fn stop(&self) {
        for mut process in self.running.take().into_iter().rev() {
            // Fails only if the group is gone.
            let _ = killpg(process.group, Signal::SIGKILL);
            process.ended().await;
        }
        self.leash.release();
    }
}

impl Process {
    async fn ended(&mut self) -> ExitStatus {
        let ended = self.exit.wait_for(Option::is_some).await;
        ended.ok().and_then(|status| *status).unwrap_or_default()
    }

    fn failed(&self, what: &str) -> BedError {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        BedError::Program { name: self.name.to_owned(), what: what.to_owned(), log: self.log.clone(), tail }
    }
}

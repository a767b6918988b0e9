//! A running world, as a test holds it: its clusters, in one AWS side.
//!
//! The processes belong to the supervisor (`spillway-bed up`), a child of the test's process. A pipe
//! ties the two together: when it closes, because the world was dropped or its process is gone, the
//! supervisor stops everything and removes the folder.

use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::Deref;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::error::BedError;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorldOptions {
    /// How long the API server believes a token it has checked. EKS's two minutes hide that a
    /// right was taken away, so tests want none.
    pub token_cache: Duration,
    /// How much garbage the API server lets gather before it collects it, in per cent of what it keeps (Go's `GOGC`).
    pub gogc: u32,
    /// How far the controllers and kwok stand back behind the API server and etcd while all want the processors (`nice`).
    pub controllers_nice: u8,
    /// Whether `deploy/optional/flow-control.yaml` is in force, which most clusters do without.
    pub flow_control: bool,
    /// Their names; at least one. Each has a control plane of its own, which costs seconds and memory.
    pub clusters: Vec<String>,
    /// Where nobody has enrolled the clusters: how each lets roles in, in EKS' words. Empty: they are all enrolled.
    pub unprepared: Vec<String>,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            token_cache: Duration::ZERO,
            gogc: 100,
            controllers_nice: 0,
            flow_control: true,
            clusters: vec!["bed".to_owned()],
            unprepared: Vec::new(),
        }
    }
}

/// Clusters in one AWS side. Most tests want one: a world stands for its first cluster, whose fields and methods it has.
#[derive(Debug)]
pub struct World {
    clusters: Vec<Cluster>,
    supervisor: Supervisor,
}

impl Deref for World {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.clusters.first().expect("the supervisor starts at least one")
    }
}

impl World {
    pub async fn start() -> Result<Self, BedError> {
        Self::start_with(WorldOptions::default()).await
    }

    pub async fn start_with(options: WorldOptions) -> Result<Self, BedError> {
        let starting = tokio::task::spawn_blocking(move || Supervisor::start(&options));
        let ended = starting.await.map_err(|error| BedError::Supervisor(error.to_string()));
        let (supervisor, clusters) = ended.flatten()?;
        supervisor.keep_logs_after_a_panic();
        let clusters = try_join_all(clusters.into_iter().map(Cluster::signed_in)).await?;
        Ok(Self { clusters, supervisor })
    }

    /// All of them, in the order of [`WorldOptions::clusters`].
    #[must_use]
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// The logs are wanted: the supervisor keeps them when it ends, and says where.
    pub fn keep_logs(&self) {
        self.supervisor.tell(KEEP_LOGS);
    }
}

/// The child that owns the world's processes. Dropping it waits until nothing is left.
#[derive(Debug)]
struct Supervisor {
    child: Child,
    leash: Option<Arc<Mutex<ChildStdin>>>,
}

/// What the supervisor says on stdout: exactly one of the two.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", untagged)]
pub(crate) enum Report {
    Failed { error: String },
    Ready(Vec<Cluster>),
}

/// What the supervisor is told on stdin when the logs of this world are wanted.
pub(crate) const KEEP_LOGS: &str = "keep-logs";

impl Supervisor {
    fn start(options: &WorldOptions) -> Result<(Self, Vec<Cluster>), BedError> {
        let program = program()?;
        let mut child = Command::new(&program)
            .arg("up")
            .arg(serde_json::json!(options).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own, so that Ctrl-C reaches the test first and the world ends after it.
            .process_group(0)
            .spawn()
            .map_err(BedError::io(format!("start {}", program.display())))?;
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let supervisor = Self { child, leash: Some(Arc::new(Mutex::new(stdin))) };

        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map_err(BedError::io("read what the supervisor says"))?;
        match serde_json::from_str(&line) {
            Ok(Report::Ready(clusters)) => Ok((supervisor, clusters)),
            Ok(Report::Failed { error }) => Err(BedError::Supervisor(error)),
            Err(_) => Err(BedError::Supervisor(format!("it said {line:?}"))),
        }
    }

    /// Whatever panics in this process, the logs may tell why: the supervisor keeps them and says where.
    fn keep_logs_after_a_panic(&self) {
        let leash = self.leash.as_ref().map_or_else(Weak::new, Arc::downgrade);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            if let Some(leash) = leash.upgrade() {
                tell(&leash, KEEP_LOGS);
            }
        }));
    }

    fn tell(&self, line: &str) {
        if let Some(leash) = &self.leash {
            tell(leash, line);
        }
    }
}

fn tell(leash: &Mutex<ChildStdin>, line: &str) {
    let mut stdin = leash.lock().unwrap_or_else(PoisonError::into_inner);
    // A supervisor that is gone has said why itself.
    let _ = writeln!(stdin, "{line}");
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.leash = None;
        if let Err(error) = self.child.wait() {
            eprintln!("cannot wait for the test bed's supervisor: {error}");
        }
    }
}

/// The `spillway-bed` program: `SPILLWAY_BED`, else this one, else beside this one's target folder.
pub(crate) fn program() -> Result<PathBuf, BedError> {
    if let Some(named) = std::env::var_os("SPILLWAY_BED") {
        return Ok(named.into());
    }
    let own = std::env::current_exe().map_err(BedError::io("find this program's own path"))?;
    let is_bed = |path: &Path| path.file_name().is_some_and(|name| name == "spillway-bed");
    if is_bed(&own) {
        return Ok(own);
    }
    // Tests live in target/debug/deps, the programs one folder up.
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("spillway-bed"))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            BedError::Supervisor(format!(
                "there is no spillway-bed program near {}; run `cargo build -p spillway-bed`",
                own.display()
            ))
        })
}

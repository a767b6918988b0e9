//! A running world: clusters in one AWS side.
//!
//! The world's processes belong to a thread of this program. A [`Leash`] stops them and removes their folder if this program
//! ends without dropping the world.

use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{try_join, try_join_all};
use tokio::sync::oneshot;

use crate::aws::Aws;
use crate::cloud::{self, Cloud};
use crate::cluster::Cluster;
use crate::control_plane;
use crate::error::BedError;
use crate::kubeconfig;
use crate::layout::{ACCOUNT, ClusterLayout, Layout, REGION};
use crate::leash::Leash;

#[derive(Debug, Clone)]
pub struct WorldOptions {
    /// Cache of checked tokens in the API server. EKS' two minutes hide that a right was taken away; tests need none.
    pub token_cache: Duration,
    /// `GOGC` of the API server.
    pub gogc: u32,
    /// Niceness of the controllers and kwok beside the API server and etcd.
    pub controllers_nice: u8,
    /// Applies `deploy/optional/flow-control.yaml`, which most clusters lack.
    pub flow_control: bool,
    /// Names of the clusters; at least one. Each has a control plane of its own, which costs seconds and memory.
    pub clusters: Vec<String>,
    /// EKS' authentication modes of clusters that are not enrolled. Empty: all are enrolled.
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

/// Clusters in one AWS side. Dereferences to the first cluster. Dropping it waits until nothing is left.
#[derive(Debug)]
pub struct World {
    clusters: Vec<Cluster>,
    leash: Arc<Leash>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Deref for World {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.clusters.first().expect("a world has at least one cluster")
    }
}

type Ready = oneshot::Sender<Result<Vec<Cluster>, BedError>>;

impl World {
    pub async fn start() -> Result<Self, BedError> {
        Self::start_with(WorldOptions::default()).await
    }

    pub async fn start_with(options: WorldOptions) -> Result<Self, BedError> {
        let leash = Arc::new(Leash::start().map_err(BedError::io("start a shell"))?);
        let layout = Layout::new(options, &leash)?;
        keep_logs_after_a_panic(&leash);
        let (ready, started) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let of_thread = Arc::clone(&leash);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a thread can have a runtime").block_on(run(&layout, &of_thread, ready, ended));
        });
        let clusters = started.await.expect("the thread reports before it ends")?;
        Ok(Self { clusters, leash, end: Some(end), thread: Some(thread) })
    }

    /// All clusters, in the order of [`WorldOptions::clusters`].
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// Keeps the logs when the world ends, and prints their folder then.
    pub fn keep_logs(&self) {
        self.leash.keep_logs();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.end = None;
        // The thread has printed why it failed, if it has.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The life of a world: starts everything, keeps it until the world is dropped, and stops everything.
async fn run(layout: &Layout, leash: &Leash, ready: Ready, ended: oneshot::Receiver<()>) {
    let mut ready = Some(ready);
    let outcome = tokio::select! {
        _ = ended => Ok(()),
        Err(error) = live(layout, &mut ready) => Err(error),
    };
    layout.processes.stop().await;
    let Err(error) = outcome else { return };
    leash.keep_logs();
    match ready.take() {
        Some(ready) => drop(ready.send(Err(error))),
        None => eprintln!("the test bed has failed: {}", error.story()),
    }
}

/// Returns only if the world fails.
async fn live(layout: &Layout, ready: &mut Option<Ready>) -> Result<std::convert::Infallible, BedError> {
    let clusters = layout.clusters()?;
    let sign_in = async {
        let cloud = cloud::start(layout).await?;
        try_join_all(clusters.iter().map(|cluster| control_plane::start_authenticator(cluster, &cloud))).await?;
        Ok(cloud)
    };
    let (admins, cloud) = try_join(try_join_all(clusters.iter().map(control_plane::start)), sign_in).await?;
    try_join_all(clusters.iter().map(|cluster| cloud::register_cluster(cluster, &cloud))).await?;
    if let Some(error) = layout.processes.any_failure().now_or_never() {
        return Err(error);
    }
    let described = try_join_all(clusters.iter().map(|cluster| describe(layout, cluster, &cloud))).await?;
    if let Some(ready) = ready.take() {
        let _ = ready.send(Ok(described));
    }
    let following = pin!(cloud::follow_instances(Aws::new(&cloud.url), admins));
    tokio::select! {
        error = layout.processes.any_failure() => Err(error),
        never = following => match never {},
    }
}

async fn describe(layout: &Layout, cluster: &ClusterLayout<'_>, cloud: &Cloud) -> Result<Cluster, BedError> {
    let kubeconfig = control_plane::admin_kubeconfig(cluster);
    Ok(Cluster {
        dir: layout.dir.clone(),
        logs: layout.logs.clone(),
        aws: cloud.url.clone(),
        region: REGION.to_owned(),
        account: ACCOUNT.to_owned(),
        cluster: cluster.name.to_owned(),
        admin: kubeconfig::read(&kubeconfig).await?,
        kubeconfig,
        api_server: control_plane::url(cluster),
        ca: cluster.path("ca.pem"),
        audit_log: control_plane::audit_log(cluster),
        kubectl: layout.setup.program("kubectl"),
    })
}

/// A panic anywhere in this program keeps the logs.
fn keep_logs_after_a_panic(leash: &Arc<Leash>) {
    let leash: Weak<Leash> = Arc::downgrade(leash);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        if let Some(leash) = leash.upgrade() {
            leash.keep_logs();
        }
    }));
}

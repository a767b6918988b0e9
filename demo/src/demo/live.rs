//! What happens in the cluster, as it happens: watches of nodes and pods, the API server's audit log for
//! what no watch shows, and the AWS side for the instance.

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{ListParams, ObjectList, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::aws::{Aws, Changed};
use spillway_bed::{BedError, TestNode, World};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::scene::{Line, Scene, Tone};
use super::screen::Screen;

/// How long one look at the audit log or at the instances that have gone may last.
const LOOK: Duration = Duration::from_secs(20);
/// For what follows from a drain: pods that start elsewhere, the instance and the node that go. On a machine with much
/// else to do.
const SETTLES_WITHIN: Duration = Duration::from_mins(2);

enum Change {
    Node(Box<WatchEvent<Node>>),
    Pod(Box<WatchEvent<Pod>>),
    /// All that the function has asked of the API server since the view began.
    Requests(Vec<Request>),
    InstanceGone(String),
}

/// The view of one node's drain.
pub(super) struct Live<'a> {
    screen: &'a Screen,
    aws: Aws,
    node: TestNode,
    scene: Scene,
    /// Since when the seconds are counted: the notice's own time.
    notice: Timestamp,
    told_instance_gone: bool,
    /// How many pods ran before that are replaced elsewhere.
    replicas: usize,
    changes: mpsc::Receiver<Result<Change, BedError>>,
    _followers: JoinSet<()>,
}

impl<'a> Live<'a> {
    /// Begins to watch before the notice is given, so that nothing is missed.
    pub(super) async fn begin(
        screen: &'a Screen,
        world: &World,
        node: &TestNode,
        audit: AuditLog,
    ) -> Result<Self, BedError> {
        let client = world.admin();
        let (nodes, pods) = (Api::<Node>::all(client.clone()), Api::<Pod>::all(client.clone()));
        let listed_nodes = list(&nodes).await?;
        let listed_pods = list(&pods).await?;
        let budgets = list(&Api::<PodDisruptionBudget>::all(client)).await?.items;
        let gone = world.aws_side().changes(0, Duration::ZERO).await?.next;

        // Each change is told at once; a few may wait while another is written.
        let (tell, changes) = mpsc::channel(64);
        let mut followers = JoinSet::new();
        let (node_version, pod_version) = (version(&listed_nodes), version(&listed_pods));
        follow(&mut followers, &tell, {
            let tell = tell.clone();
            async move { watch(&nodes, node_version, |event| tell.send(Ok(Change::Node(Box::new(event))))).await }
        });
        follow(&mut followers, &tell, {
            let tell = tell.clone();
            async move { watch(&pods, pod_version, |event| tell.send(Ok(Change::Pod(Box::new(event))))).await }
        });
        follow(&mut followers, &tell, requests(audit, tell.clone()));
        follow(&mut followers, &tell, instances_gone(world.aws_side(), gone, tell.clone()));

        let scene = Scene::new(&node.name, &listed_nodes.items, &listed_pods.items, budgets);
        Ok(Self {
            screen,
            aws: world.aws_side(),
            node: node.clone(),
            replicas: scene.replicas(),
            scene,
            notice: Timestamp::now(),
            told_instance_gone: false,
            changes,
            _followers: followers,
        })
    }

    /// From here on the seconds count from the notice.
    pub(super) fn notice_given(&mut self, at: Timestamp) {
        self.notice = at;
    }

    pub(super) fn tell(&self, tone: Tone, who: &str, what: &str) {
        self.tell_at(Timestamp::now(), &Line::new(tone, who, what));
    }

    /// Tells what happens while something else goes on.
    pub(super) async fn during<T>(&mut self, other: impl Future<Output = T>) -> Result<T, BedError> {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                change = self.changes.recv() => self.take(change).await?,
                done = &mut other => return Ok(done),
            }
        }
    }

    /// Goes on until the pods that the function saw go have been seen to go here.
    pub(super) async fn until_gone(&mut self, pods: impl Iterator<Item = &str>) -> Result<(), BedError> {
        let pods: Vec<&str> = pods.collect();
        self.until("all pods of the receipt to go", |live| !pods.iter().any(|uid| live.scene.has_pod(uid))).await
    }

    /// Goes on until as many pods run as before, elsewhere; and until the node has gone, if its instance may go.
    pub(super) async fn until_settled(&mut self, instance_goes: bool) -> Result<(), BedError> {
        if instance_goes {
            self.until("the node to go", |live| !live.scene.has_node(&live.node.name)).await?;
        }
        self.until("all replacements to run", |live| live.scene.replicas() >= live.replicas).await
    }

    async fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<(), BedError> {
        let waited = timeout(SETTLES_WITHIN, async {
            while !done(self) {
                let change = self.changes.recv().await;
                self.take(change).await?;
            }
            Ok(())
        });
        waited.await.unwrap_or_else(|_| {
            let last = format!("{} of {} replicas running", self.scene.replicas(), self.replicas);
            Err(BedError::Waited { what: what.to_owned(), waited_s: SETTLES_WITHIN.as_secs(), last })
        })
    }

    async fn take(&mut self, change: Option<Result<Change, BedError>>) -> Result<(), BedError> {
        // The channel is never closed: its followers never end, and what breaks them comes through it.
        let Some(change) = change else { return pending().await };
        let lines = match change? {
            Change::Node(event) => {
                // The cloud takes the node after the instance, so it is told in that order.
                if matches!(&*event, WatchEvent::Deleted(node) if node.name_any() == self.node.name) {
                    self.instance_gone().await?;
                }
                self.scene.node(&event).into_iter().collect()
            }
            Change::Pod(event) => self.scene.pod(&event).into_iter().collect(),
            Change::Requests(requests) => self.scene.refused(&requests),
            Change::InstanceGone(id) => {
                if id == self.node.instance_id {
                    self.instance_gone().await?;
                }
                Vec::new()
            }
        };
        let now = Timestamp::now();
        for line in &lines {
            self.tell_at(now, line);
        }
        Ok(())
    }

    /// Tells once how the hooks ended, and that the instance is gone.
    async fn instance_gone(&mut self) -> Result<(), BedError> {
        if !std::mem::replace(&mut self.told_instance_gone, true) {
            let state = self.aws.instance(&self.node.instance_id).await?;
            for action in state.actions {
                let what = match (action.result, action.ended_by.as_deref()) {
                    (Some(result), Some("call")) => format!("hook {} completed with {result}", action.hook),
                    (Some(result), _) => format!("hook {} timed out: {result}", action.hook),
                    (None, _) => format!("hook {} waits no longer", action.hook),
                };
                self.tell(Tone::Cloud, "Auto Scaling", &what);
            }
            self.tell(Tone::Cloud, "EC2", &format!("instance {} {}", self.node.instance_id, state.state));
        }
        Ok(())
    }

    fn tell_at(&self, at: Timestamp, line: &Line) {
        self.screen.live(at.duration_since(self.notice).as_secs_f64(), line);
    }
}

/// Runs for as long as the view; what breaks it ends the demo.
fn follow(
    followers: &mut JoinSet<()>,
    tell: &mpsc::Sender<Result<Change, BedError>>,
    follower: impl Future<Output = Result<Infallible, BedError>> + Send + 'static,
) {
    let tell = tell.clone();
    followers.spawn(async move {
        let Err(error) = follower.await;
        // Nobody listens when the view is over, and then it broke nothing.
        let _ = tell.send(Err(error)).await;
    });
}

async fn list<K>(api: &Api<K>) -> Result<ObjectList<K>, BedError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let listing = BedError::kubernetes(format!("list {}", K::plural(&())));
    api.list(&ListParams::default()).await.map_err(listing)
}

fn version<K: Clone>(list: &ObjectList<K>) -> String {
    list.metadata.resource_version.clone().unwrap_or_default()
}

/// All changes from a version on. A watch ends every few minutes, and goes on where it was.
async fn watch<K, Told, E>(
    api: &Api<K>,
    mut version: String,
    tell: impl Fn(WatchEvent<K>) -> Told,
) -> Result<Infallible, BedError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    Told: Future<Output = Result<(), E>>,
{
    let watching = || BedError::kubernetes(format!("watch {}", K::plural(&())));
    loop {
        let events = api.watch(&WatchParams::default(), &version).await.map_err(watching())?;
        let mut events = pin!(events);
        while let Some(event) = events.try_next().await.map_err(watching())? {
            match &event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    version = object.resource_version().unwrap_or(version);
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => {
                    let error = kube::Error::Api(status.clone());
                    return Err(watching()(error));
                }
            }
            // Told to nobody when the view is over, and then this ends with it.
            let _ = tell(event).await;
        }
    }
}

async fn requests(mut audit: AuditLog, tell: mpsc::Sender<Result<Change, BedError>>) -> Result<Infallible, BedError> {
    let begun = Timestamp::now();
    let mut seen = audit.requests()?.len();
    loop {
        match audit.wait_until("a request", LOOK, |requests| requests.len() > seen).await {
            Ok(mut requests) => {
                seen = requests.len();
                requests.retain(|request| request.received >= begun);
                let _ = tell.send(Ok(Change::Requests(requests))).await;
            }
            Err(BedError::Waited { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}

async fn instances_gone(
    aws: Aws,
    mut since: u64,
    tell: mpsc::Sender<Result<Change, BedError>>,
) -> Result<Infallible, BedError> {
    loop {
        let page = aws.changes(since, LOOK).await?;
        since = page.next;
        for gone in page.changes.into_iter().filter(|change| change.what == Changed::Terminated) {
            let _ = tell.send(Ok(Change::InstanceGone(gone.instance.instance_id))).await;
        }
    }
}

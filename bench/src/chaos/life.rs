//! The life of one node: it comes with its pods, AWS does with its instance what the story says, and when all is quiet it is
//! looked at and goes.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use spillway_bed::aws::{CapacityReservation, Delivered, Ec2State};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{BedError, NodeOptions, TestNode, World};
use tokio::time::{Instant, sleep};

use super::moved::{Told, Workload};
use super::notice::{self, About};
use super::plan::{Life, Posting};
use super::post::Post;
use super::story::{Act, Story};
use super::verdict::Ended;

/// The namespace of all pods, and the Auto Scaling group of all nodes that have one.
pub(super) const NAME: &str = "chaos";
/// What a notice leaves that says when its instance goes.
const WINDOW: Duration = Duration::from_secs(30);
/// What the setting leaves that says how long a hook may wait.
const HOOK_WINDOW: Duration = Duration::from_secs(60);
/// What a spot notice leaves by itself.
const SPOT: Duration = Duration::from_secs(120);
/// A schedule that is further away is made to come at once.
const NEAR: Duration = Duration::from_secs(90);
/// How often that is done for one node: it is looked for every ten minutes.
const MOST_CALLS: usize = 3;
/// How long the test bed is tried while its API server is away.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Lives it. What it answers is how it was in the end.
pub(super) async fn live(world: &World, post: &Arc<Post>, life: &Life) -> Result<Ended, BedError> {
    let Arrived { node, reservation, pods } = patiently(|attempt| arrive(world, life, attempt)).await?;
    let (node, reservation) = (&node, &reservation);
    let starts = Timestamp::now();
    let mut telling = Telling { world, post, life, node, reservation, told: 0, starts, bounds: Vec::new() };
    for act in life.story.acts() {
        telling.act(act).await?;
    }
    telling.until_quiet().await?;
    let mut ended = patiently(|_| look(world, life, node)).await?;
    let told = std::mem::take(&mut telling.bounds);
    ended.workload = Workload { pods, grace: life.grace, budget: life.budget, drains: life.story.drains(), told };
    if life.story.goes_on() {
        telling.act(Act::Terminate).await?;
        telling.until_told().await?;
    }
    Ok(ended)
}

/// A node with its pods.
struct Arrived {
    node: TestNode,
    /// The capacity block that its instance has to itself, if it is of one.
    reservation: String,
    /// By their names, which no other pods have.
    pods: Vec<String>,
}

/// Makes the instance, its node and its pods. An attempt that fails leaves an instance behind that nobody hears of.
async fn arrive(world: &World, life: &Life, attempt: usize) -> Result<Arrived, BedError> {
    let reservation = format!("cr-{:011x}{attempt:06x}", life.number);
    let block = || CapacityReservation { id: reservation.clone(), lifecycle: Some("capacity-block".to_owned()) };
    let options = NodeOptions {
        group: life.story.has_hook().then(|| NAME.to_owned()),
        spot: life.story.is_spot(),
        capacity_reservation: (life.story == Story::BlockExpired).then(block),
        ..NodeOptions::default()
    };
    let node = world.add_node(options).await?;
    let (client, app) = (world.admin(), format!("web-{}-{attempt}", life.number));
    let grace_s = u32::try_from(life.grace.as_secs()).unwrap_or(u32::MAX);
    let shape = PodShape::default().exits_after(life.exits_after).grace(grace_s);
    let shape = shape.with(json!({"metadata": {"labels": {"app": app}}}));
    let pods = pods::fill_node(&client, NAME, &node.name, &app, life.pods as usize, &shape).await?;
    if let Some(may_go) = life.budget {
        pods::create(&client, &pods::budget(NAME, &app, life.pods.saturating_sub(may_go))).await?;
        pods::until_budget_sees(&client, NAME, &app, life.pods.cast_signed()).await?;
    }
    Ok(Arrived { node, reservation, pods: pods.iter().map(kube::ResourceExt::name_any).collect() })
}

/// How the node and its instance are.
async fn look(world: &World, life: &Life, node: &TestNode) -> Result<Ended, BedError> {
    let hooks = world.aws_side().instance(&node.instance_id).await?.actions;
    let getting = BedError::kubernetes(format!("get node {}", node.name));
    let found = Api::<Node>::all(world.admin()).get_opt(&node.name).await.map_err(getting)?;
    let ours = match &found {
        None if life.story.goes_on() => vec!["no node any more".to_owned()],
        None => Vec::new(),
        Some(found) => ours(found),
    };
    Ok(Ended {
        node: node.name.clone(),
        instance: node.instance_id.clone(),
        goes_on: life.story.goes_on(),
        is_reclaimed: life.story == Story::ScaledInAndReclaimed,
        looked: Timestamp::now(),
        workload: Workload::default(),
        ours,
        hooks: hooks.into_iter().map(|action| action.ended_by).collect(),
    })
}

fn ours(node: &Node) -> Vec<String> {
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    let claim = node.annotations().get("spillway/claim").map(|claim| format!("the claim {claim}"));
    cordoned.then(|| "a cordon".to_owned()).into_iter().chain(claim).collect()
}

/// A story as far as it has been told.
struct Telling<'a> {
    world: &'a World,
    post: &'a Arc<Post>,
    life: &'a Life,
    node: &'a TestNode,
    reservation: &'a str,
    /// How many notices were sent.
    told: usize,
    /// When its maintenance does.
    starts: Timestamp,
    /// What was told that has pods leave.
    bounds: Vec<Told>,
}

impl Telling<'_> {
    async fn act(&mut self, act: Act) -> Result<(), BedError> {
        let (aws, id) = (self.world.aws_side(), self.node.instance_id.as_str());
        let event_id = format!("{}-{}", self.told, id);
        let about = About { id: &event_id, instance: id };
        let at = Timestamp::now();
        let delivered = match act {
            Act::Recommend => aws.send_notice(&about.rebalance()).await?,
            Act::TakeCapacity => aws.send_notice(&about.capacity(WINDOW)).await?,
            Act::ExpireBlock => aws.send_notice(&about.capacity_block(self.reservation, WINDOW)).await?,
            Act::Announce(after) => {
                self.starts = notice::whole(Timestamp::now() + after);
                aws.send_notice(&about.maintenance(self.starts)).await?
            }
            Act::CallOff => aws.send_notice(&about.maintenance_over(self.starts)).await?,
            Act::Interrupt => {
                let mut delivered = aws.interrupt(id, WINDOW).await?;
                for one in &mut delivered {
                    one.event = notice::sent_ago(one.event.take(), SPOT.saturating_sub(WINDOW));
                }
                delivered
            }
            Act::ScaleIn => aws.terminate(id).await?,
            Act::BeginToStop => aws.change_state(id, &[Ec2State::Stopping]).await?,
            Act::Stop => aws.change_state(id, &[Ec2State::Stopped]).await?,
            Act::Start => aws.start(id).await?,
            Act::ShutDown => aws.change_state(id, &[Ec2State::ShuttingDown]).await?,
            Act::Terminate => {
                aws.terminate_instance(id).await?;
                aws.take_deliveries(id).await?
            }
            Act::Reboot => {
                aws.reboot(id).await?;
                Vec::new()
            }
            Act::Pause(time) => {
                sleep(time).await;
                Vec::new()
            }
            Act::Settle => {
                self.post.until_idle(id).await?;
                Vec::new()
            }
        };
        let goes = match act {
            Act::TakeCapacity | Act::ExpireBlock | Act::Interrupt => Some(at + WINDOW),
            Act::ScaleIn => Some(at + HOOK_WINDOW),
            Act::Announce(_) => Some(self.starts),
            _ => None,
        };
        if goes.is_some() || matches!(act, Act::Recommend | Act::BeginToStop | Act::ShutDown) {
            self.bounds.push(Told { at, goes });
        }
        self.send(delivered);
        Ok(())
    }

    fn send(&mut self, delivered: Vec<Delivered>) {
        for Delivered { event, .. } in delivered {
            let posting = self.life.postings.get(self.told).copied().unwrap_or(Posting::PROMPT);
            self.post.send(&self.node.instance_id, event, posting);
            self.told += 1;
        }
    }

    /// Waits until nothing more is to come: the instance has gone, or what is to bring its node back has been done.
    async fn until_quiet(&mut self) -> Result<(), BedError> {
        let mut calls = 0;
        loop {
            self.until_told().await?;
            let due = if self.life.story.goes_on() {
                self.post.schedules(&self.node.instance_id).await?.into_iter().next()
            } else if self.is_gone().await? {
                return self.until_told().await;
            } else {
                sleep(LOOK_AGAIN).await;
                continue;
            };
            let Some(due) = due else { return Ok(()) };
            let wait = Duration::try_from(due.at.duration_since(Timestamp::now())).unwrap_or_default();
            if wait < NEAR {
                sleep(wait + LOOK_AGAIN).await;
            } else if calls < MOST_CALLS {
                calls += 1;
                self.post.send(&self.node.instance_id, due.input, Posting::PROMPT);
            } else {
                return Ok(());
            }
        }
    }

    /// Sends what AWS has told of the instance by itself, and waits until all that was told has come to its end.
    async fn until_told(&mut self) -> Result<(), BedError> {
        let delivered = self.world.aws_side().take_deliveries(&self.node.instance_id).await?;
        self.send(delivered);
        self.post.until_idle(&self.node.instance_id).await
    }

    async fn is_gone(&self) -> Result<bool, BedError> {
        Ok(self.world.aws_side().instance(&self.node.instance_id).await?.state == "terminated")
    }
}

/// Does it again while the API server is away. What is done is told which attempt it is.
async fn patiently<T>(attempt: impl AsyncFn(usize) -> Result<T, BedError>) -> Result<T, BedError> {
    let until = Instant::now() + PATIENCE;
    let mut attempts = 0;
    loop {
        match attempt(attempts).await {
            Err(_) if Instant::now() < until => sleep(LOOK_AGAIN).await,
            result => return result,
        }
        attempts += 1;
    }
}

//! A drain with one fault.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::aws::Hook;
use spillway_bed::faults::{Means, Network, Way};
use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::karpenter::{NodeClaim, create_claim, node_claims};
use spillway_bed::lambda::{Delivery, LambdaOptions};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::Mode;
use spillway_e2e::{SPOT, Stage, in_seconds, notice, receipt, spot_notice, world};
use tokio::time::{sleep, timeout};

use super::Case;

/// More than one: a fault may strike only one of them.
const PODS: u32 = 2;
/// Window: longer than most timeouts.
const WINDOW: Duration = Duration::from_secs(60);
/// Window if the timeout of a list has to pass, or that of a deletion in the second half.
const LONG_WINDOW: Duration = Duration::from_secs(90);
/// Time of the invocation beyond the window: the drain's five seconds for its report, and one.
const BEYOND: Duration = Duration::from_secs(6);
/// Maximum time of a drain with all its tries.
const LIMIT: Duration = Duration::from_secs(180);
/// The settings' minimum.
const HOOK_MAX_WAIT: Duration = Duration::from_secs(60);
/// Auto Scaling's minimum.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);
/// Refusals that fail the invocation.
const FOR_GOOD: [&str; 3] = ["403", "422", "denied"];

/// Drains a node with the case's fault, and panics at a violation.
pub(super) async fn try_one(case: Case) {
    let set_up = SetUp::new(case).await;
    let event = set_up.event().await;
    let drain = async {
        tokio::select! {
            delivery = set_up.stage.lambda.invoke_async(event) => delivery.expect("the queue works"),
            never = set_up.break_network() => match never {},
        }
    };
    let delivery = timeout(LIMIT, drain).await.unwrap_or_else(|_| panic!("{case}: the drain hangs"));
    let judged = set_up.judge(&delivery).await;
    judged.unwrap_or_else(|violation| panic!("{case}: {violation}: {delivery:#?}"));
}

/// Stage and gateways of a case, with its fault in place.
struct SetUp {
    case: Case,
    stage: Stage,
    claim: Option<NodeClaim>,
    kubernetes: Gateway,
    aws: Gateway,
    rules: Rules,
    /// Requests of the step, at which the network fails.
    held: Held,
}

impl SetUp {
    async fn new(case: Case) -> Self {
        let (world, name, way) = (world().await, name(case), case.step.way);
        let group = matches!(way, Way::Hook | Way::Tag).then(|| name.clone());
        if let Some(group) = &group {
            let hook = Hook::terminate("spillway").heartbeat_timeout(HEARTBEAT_TIMEOUT);
            let put = world.aws_side().put_tagged_group(group, &[hook], &[("team", "shop")]).await;
            put.expect("the group is new");
        }
        let claim =
            if way == Way::Karpenter { Some(create_claim(world, &name).await.expect("a NodeClaim")) } else { None };
        let (rules, held) = (Rules::default(), Held::default());
        let aws = Gateway::before_aws(world, rules.clone()).expect("a gateway");
        let kubernetes = Gateway::before_api_server(world, rules.clone()).expect("a gateway");

        let node = NodeOptions { spot: group.is_none(), group, node_claim: claim.clone(), ..NodeOptions::default() };
        let stage = Stage::set_with(&name, node).await.with_function(options(case, &aws)).await;
        kubernetes.show(world, stage.lambda.access_key_id()).await.expect("EKS shows the gateway");
        // Time for two heartbeats if they fail.
        let exits_after = Duration::from_millis(if case.step.name == "heartbeat" { 16_000 } else { 500 });
        // A grace of half a window or more: blocked pods are deleted at the half.
        stage.deploy("web", PODS, PodShape::default().grace(60).exits_after(exits_after)).await;
        if way == Way::Budget {
            let budget = pods::budget(&name, "web", PODS);
            pods::create_budget(&world.admin(), &budget, PODS as usize).await.expect("the budget counts its pods");
        }
        if way == Way::RunsAgain {
            let stopping = notice("state-change-stopping", &stage.node.instance_id);
            stage.lambda.invoke_async(stopping).await.expect("the queue works");
        }

        let fault = match case.fault.means {
            Means::Request(make) => make(case.step),
            Means::Network(_) => Fault::Hold(Side::Before, held.clone()),
        };
        rules.add(Rule::new(case.step.call, Which::Nth(1), fault));
        Self { case, stage, claim, kubernetes, aws, rules, held }
    }

    /// The notice, with a time that leaves the case's window.
    async fn event(&self) -> Value {
        let instance_id = &self.stage.node.instance_id;
        let sent = |leaves: Duration| Timestamp::now() - leaves + window(self.case);
        match self.case.step.way {
            Way::RunsAgain => notice("state-change-running", instance_id),
            Way::Rebalance => notice("rebalance-recommendation", instance_id),
            Way::Hook | Way::Tag => {
                let mut event = self.stage.terminate().await;
                event["time"] = json!(in_seconds(sent(HOOK_MAX_WAIT)));
                event
            }
            Way::Spot | Way::Budget | Way::Karpenter => spot_notice(instance_id, sent(SPOT)),
        }
    }

    /// Breaks the network at the step's request, if that is the fault.
    async fn break_network(&self) -> Infallible {
        let Means::Network(fault) = self.case.fault.means else { return pending().await };
        let gateway = if self.case.step.aws_service().is_some() { &self.aws } else { &self.kubernetes };
        let network = gateway.network();
        let set = async |mode| network.set_mode(mode).await.expect("the network is there");
        self.held.reached().await;
        let time = match fault {
            Network::Reset => Duration::ZERO,
            Network::NewAuthority => {
                gateway.rotate_authority().expect("a new authority");
                let shown = gateway.show(self.stage.world, self.stage.lambda.access_key_id()).await;
                shown.expect("EKS shows the endpoint");
                Duration::ZERO
            }
            Network::Down(time) => {
                set(Mode::Refuse).await;
                time
            }
            Network::BlackHole(time) => {
                set(Mode::BlackHole).await;
                self.held.release();
                time
            }
        };
        if !matches!(fault, Network::BlackHole(_)) {
            network.reset();
        }
        // The time is the fault.
        sleep(time).await;
        set(Mode::Pass).await;
        pending().await
    }

    /// Compares the receipt with the API server and Auto Scaling. Returns the first violation as an error.
    async fn judge(&self, delivery: &Delivery) -> Result<(), String> {
        let (case, stage, client, receipt) = (self.case, &self.stage, self.stage.client(), receipt(&delivery.last));
        if self.rules.struck() == 0 {
            return Err("the fault was not met".to_owned());
        }
        let left = pods::on_node(&client, &stage.node.name).await.expect("the API server answers").len();
        let kept = match (case.step.way, &self.claim) {
            (Way::RunsAgain, _) => stage.is_cordoned().await,
            (Way::Karpenter, Some(claim)) => {
                let claim = node_claims(&client).get_opt(&claim.name_any()).await.expect("the API server answers");
                claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_none())
            }
            _ => left > 0,
        };
        let ends_well: &[&str] = match case.step.way {
            // After a lost answer to the deletion, the NodeClaim or its node has gone.
            Way::Karpenter => &["done", "joined", "ignored"],
            Way::RunsAgain => &["done"],
            _ => &["drained", "joined"],
        };
        let ending = receipt["ending"].as_str().unwrap_or_default();
        // A later invocation continues for an instance that runs or may stay.
        if matches!(case.step.way, Way::RunsAgain | Way::Rebalance) && ending == "continued" && left == 0 {
            return Ok(());
        }
        if !ends_well.contains(&ending) || kept {
            return Err(format!("the ending is {ending:?}; kept: {kept}"));
        }
        // The invocation waits out every other fault.
        if !delivery.failed.is_empty() && !FOR_GOOD.contains(&case.fault.name) {
            return Err(format!("it took {} more tries", delivery.failed.len()));
        }
        let ended_by = stage.instance().await.actions.pop().map(|hook| hook.ended_by.unwrap_or_default());
        match (receipt["hook"]["state"].as_str(), ended_by.as_deref()) {
            (_, None) | (Some("completed" | "already-over"), Some("call")) => Ok(()),
            (state, ended_by) => Err(format!("the receipt reports {state:?}, but {ended_by:?} ended the hook")),
        }
    }
}

fn options(case: Case, aws: &Gateway) -> LambdaOptions {
    let mut env = vec![("AWS_ENDPOINT_URL".to_owned(), aws.url())];
    let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
    // A stack of its own: the endpoints that self-tests of other scenarios cached may be gone.
    set("SPILLWAY_STACK", name(case));
    match case.step.way {
        Way::Hook => set("SPILLWAY_HOOK_MAX_WAIT_S", HOOK_MAX_WAIT.as_secs().to_string()),
        Way::Tag => {
            set("SPILLWAY_HOOK_MAX_WAIT_S", HOOK_MAX_WAIT.as_secs().to_string());
            set("SPILLWAY_MANAGED_TAG", "team=shop".to_owned());
        }
        Way::Karpenter => set("SPILLWAY_KARPENTER", "nodeclaim".to_owned()),
        Way::Rebalance => set("SPILLWAY_DRAIN_ON", "rebalance".to_owned()),
        Way::Spot if case.step.name == "look at the node" => {
            set("SPILLWAY_NODE_SELECTOR", "kubernetes.io/hostname".to_owned());
        }
        Way::Spot | Way::Budget | Way::RunsAgain => {}
    }
    LambdaOptions { env: env.into_iter().collect(), timeout: window(case) + BEYOND, ..LambdaOptions::default() }
}

fn window(case: Case) -> Duration {
    if matches!(case.to_string().as_str(), "list, no answer" | "delete, no answer") { LONG_WINDOW } else { WINDOW }
}

/// Name of the stage: a namespace, a group and a session.
fn name(case: Case) -> String {
    let words = format!("fault, {case}").to_lowercase();
    let parts: Vec<&str> = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

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

use super::verdict::{Observed, judge};
use super::{Case, Lasts};

/// More than one: a fault may strike only one of them.
const PODS: u32 = 2;
/// Window if the fault passes: longer than each timeout but the list's.
const WINDOW: Duration = Duration::from_secs(40);
/// Window if the list's timeout has to pass.
const WINDOW_OF_A_LIST: Duration = Duration::from_secs(90);
/// Window of a lasting fault.
const SHORT_WINDOW: Duration = Duration::from_secs(10);
/// Time of the invocation beyond the window: the drain's five seconds for its report, and one.
const BEYOND: Duration = Duration::from_secs(6);
/// Maximum time of a drain with all its tries.
const LIMIT: Duration = Duration::from_secs(180);
/// The settings' minimum.
const HOOK_MAX_WAIT: Duration = Duration::from_secs(60);
/// Auto Scaling's minimum.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);
/// No name of the top-level domain `invalid` exists (RFC 2606).
const NOWHERE: &str = "nowhere.invalid";

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
    let observed = set_up.observe(&delivery).await;
    judge(case, &receipt(&delivery.last), &observed)
        .unwrap_or_else(|violation| panic!("{case}: {violation}: {delivery:#?}"));
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
        stage.deploy("web", PODS, PodShape::default().exits_after(exits_after)).await;
        if way == Way::Budget {
            let budget = pods::budget(&name, "web", PODS);
            pods::create_budget(&world.admin(), &budget, PODS as usize).await.expect("the budget counts its pods");
        }
        if way == Way::RunsAgain {
            let stopping = notice("state-change-stopping", &stage.node.instance_id);
            stage.lambda.invoke_async(stopping).await.expect("the queue works");
        }

        let set_up = Self { case, stage, claim, kubernetes, aws, rules, held };
        set_up.put_fault().await;
        set_up
    }

    async fn put_fault(&self) {
        let Case { step, fault, lasts } = self.case;
        let fault = match fault.means {
            Means::Request(make) => make(step),
            Means::Network(_) => Fault::Hold(Side::Before, self.held.clone()),
            Means::Endpoint => {
                // AWS' endpoints stand in the function's environment.
                if step.aws_service().is_none() {
                    let (world, key) = (self.stage.world, self.stage.lambda.access_key_id());
                    let (aws, nowhere, ca) = (world.aws_side(), format!("https://{NOWHERE}"), self.kubernetes.ca());
                    let shown = aws.override_endpoint(key, &world.cluster, Some(&nowhere), Some(&ca)).await;
                    shown.expect("EKS shows the endpoint");
                }
                return;
            }
        };
        let which = if lasts == Lasts::Once { Which::Nth(1) } else { Which::All };
        self.rules.add(Rule::new(step.call, which, fault));
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
        let passes = self.case.lasts == Lasts::Once;
        let set = async |mode| network.set_mode(mode).await.expect("the network is there");
        loop {
            self.held.reached().await;
            let time = match fault {
                Network::Reset => {
                    network.reset();
                    continue;
                }
                Network::NewAuthority => {
                    gateway.rotate_authority().expect("a new authority");
                    if passes {
                        let shown = gateway.show(self.stage.world, self.stage.lambda.access_key_id()).await;
                        shown.expect("EKS shows the endpoint");
                    }
                    network.reset();
                    continue;
                }
                Network::Down(time) => {
                    set(Mode::Refuse).await;
                    network.reset();
                    time
                }
                Network::BlackHole(time) => {
                    set(Mode::BlackHole).await;
                    self.held.release();
                    time
                }
            };
            if passes {
                // The time is the fault.
                sleep(time).await;
                set(Mode::Pass).await;
            }
        }
    }

    /// Result in the API server and in Auto Scaling.
    async fn observe(&self, delivery: &Delivery) -> Observed {
        let (stage, client) = (&self.stage, self.stage.client());
        let left = pods::on_node(&client, &stage.node.name).await.expect("the API server answers").len();
        let mut actions = stage.instance().await.actions;
        let kept = match (self.case.step.way, &self.claim) {
            (Way::RunsAgain, _) => stage.is_cordoned().await.then_some("the cordon"),
            (Way::Karpenter, Some(claim)) => {
                let claim = node_claims(&client).get_opt(&claim.name_any()).await.expect("the API server answers");
                claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_none()).then_some("the NodeClaim")
            }
            _ => None,
        };
        let met_fault = self.rules.struck() > 0 || matches!(self.case.fault.means, Means::Endpoint);
        Observed { met_fault, failed_tries: delivery.failed.len(), left, hook: actions.pop(), kept }
    }
}

fn options(case: Case, aws: &Gateway) -> LambdaOptions {
    let mut env = vec![("AWS_ENDPOINT_URL".to_owned(), aws.url())];
    if let (Means::Endpoint, Some(service)) = (case.fault.means, case.step.aws_service()) {
        let service = match service {
            "autoscaling" => "AUTO_SCALING".to_owned(),
            "events" => "EVENTBRIDGE".to_owned(),
            service => service.to_uppercase(),
        };
        env.push((format!("AWS_ENDPOINT_URL_{service}"), format!("http://{NOWHERE}")));
    }
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
    LambdaOptions {
        env: env.into_iter().collect(),
        timeout: window(case) + BEYOND,
        // A lasting fault meets a second try, too.
        maximum_retry_attempts: (case.lasts == Lasts::ForEver).then_some(0),
        ..LambdaOptions::default()
    }
}

fn window(case: Case) -> Duration {
    match (case.step.name, case.lasts) {
        ("list", Lasts::Once) if case.fault.name == "no answer" => WINDOW_OF_A_LIST,
        // Two heartbeats take longer, and a schedule is tried for ten seconds before its drain.
        ("heartbeat" | "schedule", _) | (_, Lasts::Once) => WINDOW,
        // A fault without texts fails no drain, and needs time.
        (_, Lasts::ForEver) if case.fault.words.is_empty() => WINDOW,
        (_, Lasts::ForEver) => SHORT_WINDOW,
    }
}

/// Name of the stage: a namespace, a group and a session.
fn name(case: Case) -> String {
    let words = format!("fault, {case}").to_lowercase();
    let parts: Vec<&str> = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

//! One drain with one fault.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::aws::Hook;
use spillway_bed::faults::{Means, Network, Way};
use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::karpenter::{Karpenter, NodeClaim, node_claims};
use spillway_bed::lambda::{Delivery, LambdaOptions};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::Mode;
use spillway_e2e::{Stage, receipt, spot_notice, world};
use tokio::time::{sleep, timeout};

use super::verdict::{Seen, judge};
use super::{Case, Lasts};
use crate::each_notice::about;

/// Enough that a fault at one is not a fault at all.
const PODS: u32 = 2;
/// How long a notice leaves when the fault passes: more than each timeout but the list's.
const WINDOW: Duration = Duration::from_secs(40);
/// The same when the list's timeout has to pass.
const WINDOW_OF_A_LIST: Duration = Duration::from_secs(90);
/// How long a notice leaves when it does not: as short as a window can be.
const SHORT_WINDOW: Duration = Duration::from_secs(10);
/// What the function has beyond its window: the five seconds that it keeps for its report, and one.
const BEYOND: Duration = Duration::from_secs(6);
/// A drain with all its tries that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(180);
/// What a spot notice leaves by itself.
const SPOT: Duration = Duration::from_secs(120);
/// The shortest longest wait that the settings allow.
const HOOK_MAX_WAIT: Duration = Duration::from_secs(60);
/// The shortest that Auto Scaling has.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);
/// No name of the top-level domain `invalid` exists (RFC 2606).
const NOWHERE: &str = "nowhere.invalid";

/// Drains a node past the case's fault, or up to it. Panics if what came of it is not as required.
pub(super) async fn try_one(case: Case) {
    let ground = Ground::set(case).await;
    let event = ground.event().await;
    let drain = async {
        tokio::select! {
            delivery = ground.stage.lambda.invoke_async(event) => delivery.expect("the queue works"),
            never = ground.break_network() => match never {},
        }
    };
    let delivery = timeout(LIMIT, drain).await.unwrap_or_else(|_| panic!("{case}: it hangs"));
    let seen = ground.look(&delivery).await;
    judge(case, &receipt(&delivery.last), &seen).unwrap_or_else(|why| panic!("{case}: {why}: {delivery:#?}"));
}

/// What a case needs, with its fault in place.
struct Ground {
    case: Case,
    stage: Stage,
    /// If the node is Karpenter's.
    karpenter: Option<(Karpenter, NodeClaim)>,
    kubernetes: Gateway,
    aws: Gateway,
    rules: Rules,
    /// The request from which on the network fails.
    held: Held,
}

impl Ground {
    async fn set(case: Case) -> Self {
        let (world, name, way) = (world().await, name(case), case.step.way);
        let group = matches!(way, Way::Hook | Way::Tag).then(|| name.clone());
        if let Some(group) = &group {
            let hook = Hook::terminate("spillway").heartbeat_timeout(HEARTBEAT_TIMEOUT);
            let put = world.aws_side().put_tagged_group(group, &[hook], &[("team", "shop")]).await;
            put.expect("the group is new");
        }
        let karpenter = if way == Way::Karpenter {
            let karpenter = Karpenter::start(world, &name).await.expect("Karpenter is installed");
            let claim = karpenter.claim().await.expect("it is created");
            Some((karpenter, claim))
        } else {
            None
        };
        let node_claim = karpenter.as_ref().map(|(_, claim)| claim.clone());
        let (rules, held) = (Rules::default(), Held::default());
        let aws = Gateway::before_aws(world, rules.clone()).expect("a gateway");
        let kubernetes = Gateway::before_api_server(world, rules.clone()).expect("a gateway");

        let node = NodeOptions { spot: group.is_none(), group, node_claim, ..NodeOptions::default() };
        let stage = Stage::set_with(&name, node).await.with_function(options(case, &aws)).await;
        kubernetes.show(world, stage.lambda.access_key_id()).await.expect("EKS shows the gateway");
        // As long as two heartbeats take, where they are what fails.
        let exits_after = Duration::from_millis(if case.step.name == "heartbeat" { 16_000 } else { 500 });
        stage.deploy("web", PODS, PodShape::default().exits_after(exits_after)).await;
        if way == Way::Budget {
            let client = world.admin();
            pods::create(&client, &pods::budget(&name, "web", PODS)).await.expect("the budget is new");
            pods::until_budget_sees(&client, &name, "web", PODS.cast_signed()).await.expect("it counts");
        }
        if way == Way::RunsAgain {
            let mut stopping = about("state-change-running", &stage.node.instance_id);
            stopping["id"] = json!(format!("stopping-{name}"));
            stopping["detail"]["state"] = json!("stopping");
            stage.lambda.invoke_async(stopping).await.expect("the queue works");
        }

        let ground = Self { case, stage, karpenter, kubernetes, aws, rules, held };
        ground.put_fault().await;
        ground
    }

    async fn put_fault(&self) {
        let Case { step, fault, lasts } = self.case;
        let fault = match fault.means {
            Means::Request(make) => make(step),
            Means::Network(_) => Fault::Hold(Side::Before, self.held.clone()),
            Means::Endpoint => {
                // That of AWS stands in the function's environment.
                if step.aws_service().is_none() {
                    let (world, key) = (self.stage.world, self.stage.lambda.access_key_id());
                    let (aws, nowhere, ca) = (world.aws_side(), format!("https://{NOWHERE}"), self.kubernetes.ca());
                    let shown = aws.override_endpoint(key, &world.cluster, Some(&nowhere), Some(&ca)).await;
                    shown.expect("EKS shows it");
                }
                return;
            }
        };
        let which = if lasts == Lasts::Once { Which::Nth(1) } else { Which::All };
        self.rules.add(Rule::new(step.call, which, fault));
    }

    /// The notice, sent so long ago that it leaves the case's window.
    async fn event(&self) -> Value {
        let instance_id = &self.stage.node.instance_id;
        let sent = |leaves: Duration| Timestamp::now() - leaves + window(self.case);
        match self.case.step.way {
            Way::RunsAgain => about("state-change-running", instance_id),
            Way::Rebalance => about("rebalance-recommendation", instance_id),
            Way::Hook | Way::Tag => {
                let mut event = self.stage.terminate().await;
                let time = sent(HOOK_MAX_WAIT).round(Unit::Second).expect("a time of these days");
                event["time"] = json!(time.to_string());
                event
            }
            Way::Spot | Way::Budget | Way::Karpenter => spot_notice(instance_id, sent(SPOT)),
        }
    }

    /// Lets the network fail when the step is reached, if that is the fault.
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
                        shown.expect("EKS shows it");
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
                // The time is the fault: nothing is waited for.
                sleep(time).await;
                set(Mode::Pass).await;
            }
        }
    }

    /// What came of it by the word of the API server and of Auto Scaling.
    async fn look(&self, delivery: &Delivery) -> Seen {
        let (stage, client) = (&self.stage, self.stage.world.admin());
        let left = pods::on_node(&client, &stage.node.name).await.expect("the API server answers").len();
        let mut actions = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known").actions;
        let is_there = match (self.case.step.way, &self.karpenter) {
            (Way::RunsAgain, _) => stage.is_cordoned().await.then_some("the cordon"),
            (Way::Karpenter, Some((_, claim))) => {
                let claim = node_claims(&client).get_opt(&claim.name_any()).await.expect("the API server answers");
                claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_none()).then_some("the NodeClaim")
            }
            _ => None,
        };
        let met = self.rules.struck() > 0 || matches!(self.case.fault.means, Means::Endpoint);
        Seen { met, failed_tries: delivery.failed.len(), left, hook: actions.pop(), is_there }
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
    // The clusters that self-tests of other scenarios remember have endpoints that may be gone.
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
        // What does not pass by itself does not pass in a second try either.
        maximum_retry_attempts: (case.lasts == Lasts::ForEver).then_some(0),
        ..LambdaOptions::default()
    }
}

fn window(case: Case) -> Duration {
    match (case.step.name, case.lasts) {
        ("list", Lasts::Once) if case.fault.name == "no answer" => WINDOW_OF_A_LIST,
        // Two heartbeats take longer; and a schedule is tried for ten seconds before its drain.
        ("heartbeat" | "schedule", _) | (_, Lasts::Once) => WINDOW,
        // What no receipt names fails no drain: there has to be time for it.
        (_, Lasts::ForEver) if case.fault.words.is_empty() => WINDOW,
        (_, Lasts::ForEver) => SHORT_WINDOW,
    }
}

/// Good for a stage: a namespace, a group and a session.
fn name(case: Case) -> String {
    let words = format!("fault, {case}").to_lowercase();
    let parts: Vec<&str> = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

#[test]
fn every_case_has_a_name_of_its_own_that_kubernetes_takes() {
    let names: Vec<String> = super::all().into_iter().map(name).collect();
    let different: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(different.len(), names.len());
    assert!(names.iter().all(|name| name.len() <= 63), "{names:?}");
}

//! One drain with one fault: a node, a namespace and a function of its own, in a world that all share.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::karpenter::Karpenter;
use spillway_bed::lambda::{Delivery, Lambda, LambdaOptions};
use spillway_bed::node_claim::{NodeClaim, node_claims};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::proxy::{Mode, Proxy};
use spillway_bed::{BedError, NodeOptions, TestNode, World};
use tokio::time::{sleep, timeout};

use super::FaultCase;
use super::fault::{Lasts, Means, Network};
use super::result::{CaseResult, Seen};
use super::step::{Server, Step};

/// Enough that a fault at one is not a fault at all.
const PODS: u32 = 2;
/// How long a notice leaves: more than the function's longest timeout, when the fault passes.
const WINDOW: Duration = Duration::from_secs(40);
/// As short as a window can be, when it does not.
const SHORT_WINDOW: Duration = Duration::from_secs(10);
/// What the function has beyond its window: the five seconds that it keeps for its report, and one.
const BEYOND: Duration = Duration::from_secs(6);
/// A drain with all its tries that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(180);
/// What a spot notice leaves by itself.
const SPOT: Duration = Duration::from_secs(120);
/// The shortest longest wait that the settings allow.
const HOOK_MAX_WAIT: Duration = Duration::from_secs(60);
/// What a group's tag is, where the settings ask for one.
const TAG: (&str, &str) = ("team", "shop");
/// The shortest that Auto Scaling has.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);

/// Drains a node past the case's fault, or up to it.
pub(super) async fn drain(world: &World, case: FaultCase) -> CaseResult {
    match timeout(LIMIT, seen(world, case)).await {
        Ok(Ok(seen)) => CaseResult::of(&seen, case),
        Ok(Err(error)) => CaseResult::Unseen(error.story()),
        Err(_) => CaseResult::Hung,
    }
}

async fn seen(world: &World, case: FaultCase) -> Result<Seen, BedError> {
    let ground = Ground::set(world, case).await?;
    let event = ground.event(world, case).await?;
    let delivery = tokio::select! {
        delivery = ground.lambda.invoke_async(event) => delivery?,
        failed = ground.break_network(world, case) => return Err(failed.map_or_else(|error| error, |never| match never {})),
    };
    ground.look(world, case, delivery).await
}

#[derive(Debug)]
struct Ground {
    node: TestNode,
    /// The node's NodeClaim, if it is Karpenter's.
    of_claim: Option<NodeClaim>,
    _karpenter: Option<Karpenter>,
    lambda: Lambda,
    kubernetes: Gateway,
    rules: Rules,
    /// The request from which on the network fails.
    held: Held,
    aws: Gateway,
}

impl Ground {
    async fn set(world: &World, case: FaultCase) -> Result<Self, BedError> {
        let name = &name(case);
        let hook = case.step.needs_hook();
        if hook {
            let hooks = [Hook::terminate("spillway").heartbeat_timeout(HEARTBEAT_TIMEOUT)];
            world.aws_side().put_tagged_group(name, &hooks, &[TAG]).await?;
        }
        let group = hook.then(|| name.clone());
        let (karpenter, node_claim) = match case.step {
            Step::NodeClaim => {
                let karpenter = Karpenter::start(world, name).await?;
                let claim = karpenter.claim().await?;
                (Some(karpenter), Some(claim))
            }
            _ => (None, None),
        };
        let of_claim = node_claim.clone();
        let node = world.add_node(NodeOptions { group, spot: !hook, node_claim, ..NodeOptions::default() }).await?;
        let client = world.admin();
        pods::create_namespace(&client, name).await?;
        // As long as two heartbeats take, where they are what fails.
        let exit = if case.step == Step::Heartbeat { 16_000 } else { 500 };
        let shape = PodShape::default().on_node(&node.name).exits_after(Duration::from_millis(exit));
        let shape = shape.with(json!({"metadata": {"labels": {"app": "web"}}}));
        for number in 0..PODS {
            pods::create(&client, &pods::bare_pod(name, &format!("web-{number}"), &shape)).await?;
        }
        pods::until_running_on(&client, &node.name, PODS as usize).await?;
        if case.step.needs_budget() {
            pods::create(&client, &pods::budget(name, "web", PODS)).await?;
            pods::until_budget_sees(&client, name, "web", PODS.cast_signed()).await?;
        }

        let rules = Rules::default();
        let aws = Gateway::before_aws(world, rules.clone())?;
        let kubernetes = Gateway::before_api_server(world, rules.clone())?;
        let lambda = Lambda::start(world, options(case, name, &aws)).await?;
        kubernetes.show(world, lambda.access_key_id()).await?;
        if case.step == Step::Undo {
            lambda.invoke_async(state_change(&node, "stopping")).await?;
        }
        let held = Held::default();
        match case.fault.means(case.step) {
            Means::Request(fault) => rules.add(Rule::new(case.step.call(), which(case.lasts), fault)),
            Means::Network(_) => {
                let fault = Fault::Hold(Side::Before, held.clone());
                rules.add(Rule::new(case.step.call(), which(case.lasts), fault));
            }
            Means::Endpoint if case.step.server() == Server::Kubernetes => {
                let (key, cluster, ca) = (lambda.access_key_id(), &world.cluster, kubernetes.ca());
                let nowhere = format!("https://{NOWHERE}");
                world.aws_side().override_endpoint(key, cluster, Some(&nowhere), Some(&ca)).await?;
            }
            // It stands in the function's environment.
            Means::Endpoint => {}
        }
        Ok(Self { node, of_claim, _karpenter: karpenter, lambda, kubernetes, rules, held, aws })
    }

    /// The notice, sent so long ago that it leaves the case's window.
    async fn event(&self, world: &World, case: FaultCase) -> Result<Value, BedError> {
        match case.step {
            Step::Undo => return Ok(state_change(&self.node, "running")),
            Step::Schedule => {
                return Ok(sent_now(include_str!("../../../events/rebalance-recommendation.json"), &self.node));
            }
            _ => {}
        }
        let (mut event, whole) = if case.step.needs_hook() {
            let delivered = world.aws_side().terminate(&self.node.instance_id).await?.into_iter().next();
            (delivered.map(|delivered| delivered.event).unwrap_or_default(), HOOK_MAX_WAIT)
        } else {
            (world.aws_side().spot_notice(&name(case), &self.node.instance_id).await?, SPOT)
        };
        let sent = Timestamp::now() - whole + window(case);
        event["time"] = json!(sent.round(Unit::Second).unwrap_or(sent).to_string());
        Ok(event)
    }

    /// Lets the network fail when the step is reached, if that is the fault. Never returns but in error.
    async fn break_network(&self, world: &World, case: FaultCase) -> Result<Infallible, BedError> {
        let Means::Network(fault) = case.fault.means(case.step) else { return pending().await };
        let network = self.network(case.step);
        let set = async |mode| network.set_mode(mode).await.map_err(BedError::io("set the network's mode"));
        loop {
            self.held.reached().await;
            match fault {
                Network::Reset => network.reset(),
                Network::Down(time) => {
                    set(Mode::Refuse).await?;
                    network.reset();
                    if case.lasts == Lasts::Once {
                        // The time is the fault: nothing is waited for.
                        sleep(time).await;
                        set(Mode::Pass).await?;
                    }
                }
                Network::BlackHole(time) => {
                    set(Mode::BlackHole).await?;
                    self.held.release();
                    if case.lasts == Lasts::Once {
                        sleep(time).await;
                        set(Mode::Pass).await?;
                    }
                }
                Network::NewAuthority => {
                    self.kubernetes.rotate_authority()?;
                    if case.lasts == Lasts::Once {
                        self.kubernetes.show(world, self.lambda.access_key_id()).await?;
                    }
                    network.reset();
                }
            }
        }
    }

    fn network(&self, step: Step) -> &Proxy {
        match step.server() {
            Server::Kubernetes => self.kubernetes.network(),
            Server::Aws(_) => self.aws.network(),
        }
    }

    /// What came of it, by the function's word and by the API server's.
    async fn look(&self, world: &World, case: FaultCase, delivery: Delivery) -> Result<Seen, BedError> {
        let left = pods::on_node(&world.admin(), &self.node.name).await?;
        let hook = world.aws_side().instance(&self.node.instance_id).await?.actions.pop();
        let reached = self.rules.struck() > 0 || matches!(case.fault.means(case.step), Means::Endpoint);
        let left = left.iter().map(ResourceExt::name_any).collect();
        Ok(Seen { delivery, left, hook, undone: self.undone(world, case).await, reached })
    }

    /// What is not as the step leaves it.
    async fn undone(&self, world: &World, case: FaultCase) -> Option<&'static str> {
        match case.step {
            Step::Undo => {
                let node = Api::<Node>::all(world.admin()).get_opt(&self.node.name).await.ok().flatten();
                let cordoned = node.and_then(|node| node.spec).and_then(|spec| spec.unschedulable) == Some(true);
                cordoned.then_some("the node is cordoned")
            }
            Step::NodeClaim => {
                let name = self.of_claim.as_ref().map(ResourceExt::name_any).unwrap_or_default();
                let claim = node_claims(&world.admin()).get_opt(&name).await.ok().flatten();
                let is_there = claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_none());
                is_there.then_some("the NodeClaim is there")
            }
            _ => None,
        }
    }
}

/// The sample of that change of state, about the node's instance, as of now.
fn state_change(node: &TestNode, state: &str) -> Value {
    let mut event = sent_now(include_str!("../../../events/state-change-running.json"), node);
    event["id"] = json!(format!("{state}-{}", node.instance_id));
    event["detail"]["state"] = json!(state);
    event
}

/// A sample as an event of now about the node's instance.
fn sent_now(sample: &str, node: &TestNode) -> Value {
    let mut event: Value = serde_json::from_str(sample).unwrap_or_default();
    let now = Timestamp::now();
    event["id"] = json!(format!("now-{}", node.instance_id));
    event["time"] = json!(now.round(Unit::Second).unwrap_or(now).to_string());
    event["detail"]["instance-id"] = json!(node.instance_id);
    event
}

/// No name of the top-level domain `invalid` exists (RFC 2606).
const NOWHERE: &str = "nowhere.invalid";

fn options(case: FaultCase, name: &str, aws: &Gateway) -> LambdaOptions {
    let mut env = vec![("AWS_ENDPOINT_URL".to_owned(), aws.url())];
    if let (Means::Endpoint, Server::Aws(service)) = (case.fault.means(case.step), case.step.server()) {
        let service = match service {
            "autoscaling" => "AUTO_SCALING".to_owned(),
            "events" => "EVENTBRIDGE".to_owned(),
            service => service.to_uppercase(),
        };
        env.push((format!("AWS_ENDPOINT_URL_{service}"), format!("http://{NOWHERE}")));
    }
    if case.step.needs_hook() {
        env.push(("SPILLWAY_HOOK_MAX_WAIT_S".to_owned(), HOOK_MAX_WAIT.as_secs().to_string()));
    }
    let setting = match case.step {
        Step::FindTag => Some(("SPILLWAY_MANAGED_TAG", format!("{}={}", TAG.0, TAG.1))),
        Step::LookAtNode => Some(("SPILLWAY_NODE_SELECTOR", "kubernetes.io/hostname".to_owned())),
        Step::NodeClaim => Some(("SPILLWAY_KARPENTER", "nodeclaim".to_owned())),
        Step::Schedule => Some(("SPILLWAY_DRAIN_ON", "rebalance".to_owned())),
        _ => None,
    };
    env.extend(setting.map(|(name, value)| (name.to_owned(), value)));
    LambdaOptions {
        function_name: name.to_owned(),
        env: env.into_iter().collect(),
        timeout: window(case) + BEYOND,
        // What does not pass by itself does not pass in a second try either.
        maximum_retry_attempts: if case.lasts == Lasts::Once { None } else { Some(0) },
        ..LambdaOptions::default()
    }
}

fn window(case: FaultCase) -> Duration {
    match (case.step, case.lasts) {
        // Two heartbeats take longer; and a schedule is tried for ten seconds before its drain.
        (Step::Heartbeat | Step::Schedule, _) | (_, Lasts::Once) => WINDOW,
        (_, Lasts::ForEver) => SHORT_WINDOW,
    }
}

fn which(lasts: Lasts) -> Which {
    match lasts {
        Lasts::Once => Which::Nth(1),
        Lasts::ForEver => Which::All,
    }
}

/// Good for a namespace, a group and a session.
fn name(case: FaultCase) -> String {
    let words = case.in_words().to_lowercase();
    let parts: Vec<&str> = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::all;
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own_that_kubernetes_takes() {
        let cases = all();
        let names: BTreeSet<String> = cases.iter().map(|case| name(*case)).collect();
        assert_eq!(names.len(), cases.len());
        assert!(names.iter().all(|name| name.len() <= 63), "{names:?}");
    }
}

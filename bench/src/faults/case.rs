//! One drain with one fault: a node, a namespace and a function of its own, in a world that all share.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use kube::ResourceExt;
use serde_json::{Value, json};
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::lambda::{Delivery, Lambda, LambdaOptions};
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
            world
                .aws_side()
                .put_group(name, &[Hook::terminate("spillway").heartbeat_timeout(HEARTBEAT_TIMEOUT)])
                .await?;
        }
        let group = hook.then(|| name.clone());
        let node = world.add_node(NodeOptions { group, spot: !hook, ..NodeOptions::default() }).await?;
        let client = world.admin();
        pods::create_namespace(&client, name).await?;
        // As long as two heartbeats take, where they are what fails.
        let exit = if case.step == Step::Heartbeat { 16_000 } else { 500 };
        let shape = PodShape::default().on_node(&node.name).exits_after(Duration::from_millis(exit));
        for number in 0..PODS {
            pods::create(&client, &pods::bare_pod(name, &format!("web-{number}"), &shape)).await?;
        }
        pods::until_running_on(&client, &node.name, PODS as usize).await?;

        let rules = Rules::default();
        let aws = Gateway::before_aws(world, rules.clone())?;
        let kubernetes = Gateway::before_api_server(world, rules.clone())?;
        let lambda = Lambda::start(world, options(case, name, &aws)).await?;
        kubernetes.show(world, lambda.access_key_id()).await?;
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
        Ok(Self { node, lambda, kubernetes, rules, held, aws })
    }

    /// The notice, sent so long ago that it leaves the case's window.
    async fn event(&self, world: &World, case: FaultCase) -> Result<Value, BedError> {
        let (mut event, whole) = if case.step.needs_hook() {
            let delivered = world.aws_side().terminate(&self.node.instance_id).await?.into_iter().next();
            (delivered.map(|delivered| delivered.event).unwrap_or_default(), HOOK_MAX_WAIT)
        } else {
            (world.aws_side().spot_notice(&name(case), &self.node.instance_id).await?, SPOT)
        };
        let sent = Timestamp::now() - whole + window(case.lasts);
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
        Ok(Seen { delivery, left, hook, reached })
    }
}

/// No name of the top-level domain `invalid` exists (RFC 2606).
const NOWHERE: &str = "nowhere.invalid";

fn options(case: FaultCase, name: &str, aws: &Gateway) -> LambdaOptions {
    let mut env = vec![("AWS_ENDPOINT_URL".to_owned(), aws.url())];
    if let (Means::Endpoint, Server::Aws(service)) = (case.fault.means(case.step), case.step.server()) {
        let service = if service == "autoscaling" { "AUTO_SCALING".to_owned() } else { service.to_uppercase() };
        env.push((format!("AWS_ENDPOINT_URL_{service}"), format!("http://{NOWHERE}")));
    }
    if case.step.needs_hook() {
        env.push(("SPILLWAY_HOOK_MAX_WAIT_S".to_owned(), HOOK_MAX_WAIT.as_secs().to_string()));
    }
    LambdaOptions {
        function_name: name.to_owned(),
        env: env.into_iter().collect(),
        timeout: window(case.lasts) + BEYOND,
        // What does not pass by itself does not pass in a second try either.
        maximum_retry_attempts: if case.lasts == Lasts::Once { 2 } else { 0 },
        ..LambdaOptions::default()
    }
}

fn window(lasts: Lasts) -> Duration {
    match lasts {
        Lasts::Once => WINDOW,
        Lasts::ForEver => SHORT_WINDOW,
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

//! An invocation that is killed at any point loses nothing: Lambda's retry, or another notice, finishes.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::WatchParams;
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Fault, Gateway, Held, Rule, Rules, Side, Which};
use spillway_bed::lambda::{Delivery, Lambda, LambdaOptions};
use spillway_bed::pods::PodShape;
use spillway_bed::watch::{Objects, until};
use spillway_e2e::{Stage, receipt, spot_notice};

const PODS: u32 = 2;
/// A claim, a list, a watch and each pod's eviction, after two questions to AWS.
const LEAST_REQUESTS: usize = 5 + PODS as usize;
/// An object goes a moment after its pod has stopped.
const WAIT: Duration = Duration::from_mins(1);
/// Drains at a time: each is a node, two gateways and up to two processes.
const AT_ONCE: usize = 4;

/// What takes the instance away.
#[derive(Debug, Clone, Copy)]
enum Notice {
    Spot,
    Terminate,
}

/// A stage whose function meets a gateway wherever it goes.
struct Watched {
    stage: Stage,
    event: Value,
    lambda: Lambda,
    rules: Rules,
    _gateways: [Gateway; 2],
}

impl Watched {
    async fn set(name: &str, notice: Notice, retries: usize) -> Self {
        let stage = Stage::set_in_group(name, Hook::terminate("spillway")).await;
        // Slow enough that a kill comes before the end: while one request stands, the rest of the drain goes on.
        stage.deploy("web", PODS, PodShape::default().exits_after(Duration::from_secs(3))).await;
        let rules = Rules::default();
        let aws = Gateway::before_aws(stage.world, rules.clone()).expect("a gateway");
        let kubernetes = Gateway::before_api_server(stage.world, rules.clone()).expect("a gateway");
        let options = LambdaOptions {
            function_name: name.to_owned(),
            env: [("AWS_ENDPOINT_URL".to_owned(), aws.url())].into(),
            maximum_retry_attempts: Some(retries),
            ..LambdaOptions::default()
        };
        let lambda = Lambda::start(stage.world, options).await.expect("credentials");
        kubernetes.show(stage.world, lambda.access_key_id()).await.expect("EKS shows the gateway");
        let event = match notice {
            Notice::Spot => spot_notice(&stage.node.instance_id, Timestamp::now()),
            Notice::Terminate => stage.terminate().await,
        };
        Self { stage, event, lambda, rules, _gateways: [aws, kubernetes] }
    }

    /// Hands out the event, and kills the process when its request of that number is done and not answered.
    /// None when there is none of that number: a drain looks once more when a pod went before it was watched.
    async fn killed_after(&self, number: usize) -> Option<Delivery> {
        let held = Held::default();
        self.rules.add(Rule::any(Which::Nth(number), Fault::Hold(Side::After, held.clone())));
        let mut delivery = std::pin::pin!(self.lambda.invoke_async(&self.event));
        tokio::select! {
            delivery = &mut delivery => {
                assert_eq!(receipt(&delivery.expect("the queue works").last)["ending"], "drained");
                return None;
            }
            () = held.reached() => self.lambda.kill(),
        }
        Some(delivery.await.expect("the queue works"))
    }

    /// What the killed process had asked for last.
    fn last_request(&self, number: usize) -> String {
        format!("{number}, {}", self.rules.calls()[number - 1])
    }

    async fn node(&self) -> Node {
        Api::<Node>::all(self.stage.world.admin()).get(&self.stage.node.name).await.expect("the node is there")
    }

    /// Waits until no pod is on the node: one that has stopped is gone for the drain, and its object goes after.
    async fn until_empty(&self, last: &str) {
        let of_node = WatchParams::default().fields(&format!("spec.nodeName={}", self.stage.node.name));
        let pods = Api::<Pod>::all(self.stage.world.admin());
        let empty = until(&pods, &of_node, "an empty node", WAIT, |pods: &Objects<Pod>| {
            if pods.is_empty() { Ok(()) } else { Err(format!("{:?} are there", pods.keys())) }
        });
        empty.await.unwrap_or_else(|error| panic!("after {last}: {error}"));
    }

    /// How the hook ended, and by whom.
    async fn hook(&self) -> (Option<String>, Option<String>) {
        let instance = self.stage.world.aws_side().instance(&self.stage.node.instance_id).await.expect("it is known");
        let action = instance.actions.into_iter().next().expect("a hook");
        (action.result, action.ended_by)
    }
}

/// As many requests as a drain makes that nobody disturbs.
async fn requests_of(name: &str, notice: Notice) -> usize {
    let watched = Watched::set(name, notice, 0).await;
    let outcome = watched.lambda.invoke(&watched.event).await;
    assert_eq!(outcome.result.as_ref().expect("it drains")["ending"], "drained", "{outcome:#?}");
    watched.rules.calls().len()
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

async fn the_retry_finishes(name: &str, notice: Notice) {
    let requests = requests_of(&format!("{name}-all"), notice).await;
    let kills = AtomicUsize::new(0);
    stream::iter(1..=requests)
        .for_each_concurrent(AT_ONCE, async |number| {
            let watched = Watched::set(&format!("{name}-{number}"), notice, 2).await;
            let Some(delivery) = watched.killed_after(number).await else { return };
            let last = watched.last_request(number);
            kills.fetch_add(1, Relaxed);

            assert_eq!(delivery.failed.len(), 1, "after {last}: {delivery:#?}");
            assert_eq!(delivery.failed[0].result.as_ref().expect_err("killed").error_type, "Runtime.ExitError");
            let answer = receipt(&delivery.last);
            let asked = &watched.rules.calls()[..number];
            // It was completed: the instance may have gone by now, and its node with it.
            let is_over = answer["hook"]["state"] == "already-over";
            if asked.iter().any(|call| call.ends_with("CompleteLifecycleAction")) {
                assert!(is_over, "after {last}: {delivery:#?}");
            } else {
                // A kill that comes late may find it completed all the same.
                assert!(is_over || answer["ending"] == "drained", "after {last}: {delivery:#?}");
            }
            watched.until_empty(&last).await;
            match notice {
                Notice::Spot => assert!(is_cordoned(&watched.node().await), "after {last}"),
                Notice::Terminate => {
                    assert_eq!(watched.hook().await, (Some("CONTINUE".to_owned()), Some("call".to_owned())), "{last}");
                }
            }
        })
        .await;
    assert!(kills.into_inner() >= LEAST_REQUESTS);
}

#[tokio::test]
async fn a_spot_drain_that_is_killed_after_any_of_its_requests_is_finished_by_the_retry() {
    the_retry_finishes("killed-spot", Notice::Spot).await;
}

#[tokio::test]
async fn a_hooks_drain_that_is_killed_after_any_of_its_requests_is_finished_by_the_retry() {
    the_retry_finishes("killed-hook", Notice::Terminate).await;
}

#[tokio::test]
async fn a_drain_that_is_killed_after_any_of_its_requests_is_finished_by_another_notice() {
    let requests = requests_of("killed-other-all", Notice::Spot).await;
    let kills = AtomicUsize::new(0);
    stream::iter(1..=requests)
        .for_each_concurrent(AT_ONCE, async |number| {
            let mut watched = Watched::set(&format!("killed-other-{number}"), Notice::Spot, 0).await;
            if watched.killed_after(number).await.is_none() {
                return;
            }
            kills.fetch_add(1, Relaxed);
            let last = watched.last_request(number);

            // A function that nobody disturbs, as one that starts again is.
            let outcome = watched.stage.lambda.invoke(watched.stage.terminate().await).await;

            let answer = outcome.result.as_ref().unwrap_or_else(|error| panic!("after {last}: {error}"));
            assert!(
                ["drained", "joined"].contains(&answer["ending"].as_str().unwrap_or_default()),
                "{last}: {answer:#}"
            );
            watched.until_empty(&last).await;
            assert_eq!(watched.hook().await, (Some("CONTINUE".to_owned()), Some("call".to_owned())), "after {last}");
            // Who joins does not know that the holder is dead, and leaves it three seconds to begin.
            let requests = watched.stage.audit.requests().expect("the audit log is there");
            if let Some(looked) = requests.iter().find(|one| one.verb == "get" && one.resource == "nodes") {
                let evictions = requests.iter().filter(|request| request.subresource == "eviction");
                let mut after = evictions.map(|eviction| eviction.received.duration_since(looked.received));
                let head_start = SignedDuration::ZERO..SignedDuration::from_secs(3);
                assert!(!after.any(|after| head_start.contains(&after)), "after {last}: {requests:#?}");
            }
        })
        .await;
    assert!(kills.into_inner() >= LEAST_REQUESTS);
}

#[tokio::test]
async fn a_drain_that_is_killed_at_every_try_leaves_its_event_in_the_failure_queue_and_its_claim_on_the_node() {
    let watched = Watched::set("killed-always", Notice::Spot, 2).await;
    let held = Held::default();
    watched.rules.add(Rule::new("list pods", Which::All, Fault::Hold(Side::After, held.clone())));
    let mut delivery = std::pin::pin!(watched.lambda.invoke_async(&watched.event));
    let delivery = loop {
        tokio::select! {
            delivery = &mut delivery => break delivery.expect("the queue works"),
            () = held.reached() => watched.lambda.kill(),
        }
    };

    assert_eq!(delivery.failed.len(), 2);
    let record = delivery.failure_record.expect("the event is kept");
    assert_eq!(record["requestPayload"], watched.event);
    let node = watched.node().await;
    let annotation: Value =
        serde_json::from_str(&node.annotations()["spillway/claim"]).expect("the annotation is JSON");
    assert!(is_cordoned(&node));
    assert_eq!((&annotation["event"], &annotation["cordoned"]), (&watched.event["id"], &true.into()));
}

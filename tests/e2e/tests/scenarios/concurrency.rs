//! An account with ten concurrent executions: waits of a spot notice and of continuations beside ten blocked hooks.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use spillway_bed::aws::Hook;
use spillway_bed::lambda::{Delivery, Lambda, LambdaOptions};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, TestNode};
use spillway_e2e::{the_one, world};
use tokio::sync::mpsc;
use tokio::time::sleep;

const NAME: &str = "ten-executions";
const EXECUTIONS: usize = 10;
/// On Lambda 15 minutes.
const INVOCATION: Duration = Duration::from_mins(1);
/// As `tools/enroll` sets it.
const HOOK_TIMEOUT: Duration = Duration::from_mins(10);
/// The hooks have taken all executions by then.
const SPOT_AFTER: Duration = Duration::from_secs(20);

fn waited(delivery: &Delivery) -> Duration {
    delivery.waits.iter().sum()
}

fn ending(delivery: &Delivery) -> String {
    let answer = delivery.last.result.as_ref();
    answer.map_or_else(|error| error.error_type.clone(), |answer| answer["ending"].as_str().unwrap_or("").to_owned())
}

/// Prints both waits and asserts no difference of clocks.
#[tokio::test]
async fn ten_blocked_hooks_keep_a_spot_notice_waiting() {
    let world = world().await;
    let (client, aws) = (world.admin(), world.aws_side());
    let hook = Hook::terminate("spillway").heartbeat_timeout(HOOK_TIMEOUT);
    aws.put_group(NAME, &[hook]).await.expect("the group is new");
    pods::create_namespace(&client, NAME).await.expect("the namespace is new");
    let blocked = (0..EXECUTIONS).map(async |number| {
        let options = NodeOptions { group: Some(NAME.to_owned()), ..NodeOptions::default() };
        let node = world.add_node(options).await.expect("the node joins");
        let shape = PodShape::default().on_node(&node.name);
        pods::run_deployment(&client, NAME, &format!("db-{number}"), 1, &shape).await.expect("its pod runs");
        node
    });
    let blocked: Vec<TestNode> = join_all(blocked).await;
    let spot = NodeOptions { spot: true, ..NodeOptions::default() };
    let spot = world.add_node(spot).await.expect("the node joins");
    let budget =
        json!({"metadata": {"namespace": NAME, "name": "none"}, "spec": {"maxUnavailable": 0, "selector": {}}});
    let budget: PodDisruptionBudget = serde_json::from_value(budget).expect("it is a budget");
    pods::create(&client, &budget).await.expect("it is created");
    let all = i32::try_from(EXECUTIONS).expect("a few");
    pods::until_budget_sees(&client, NAME, "none", all).await.expect("it counts");
    let lambda = LambdaOptions {
        function_name: NAME.to_owned(),
        timeout: INVOCATION,
        reserved_concurrency: Some(EXECUTIONS),
        wait_factor: 1.0,
        ..LambdaOptions::default()
    };
    let lambda = Lambda::start(world, lambda).await.expect("it is deployed");

    let (sender, mut invoked) = mpsc::unbounded_channel();
    let key = lambda.access_key_id().to_owned();
    let pump = world.aws_side();
    let invoking = tokio::spawn(async move {
        loop {
            let next = pump.wait_for_delivery(&key).await;
            if next.is_ok_and(|next| sender.send(next.event).is_err()) {
                return;
            }
        }
    });
    let mut spot = Box::pin(async {
        sleep(SPOT_AFTER).await;
        let window = Duration::from_secs(120);
        let event = the_one(world.aws_side().interrupt(&spot.instance_id, window).await.expect("EC2 interrupts"));
        lambda.invoke_async(event).await.expect("the queue works")
    });
    let (mut drains, mut spots, mut waits, mut drained) = (FuturesUnordered::new(), None, Vec::new(), 0);
    for node in &blocked {
        drains.push(lambda.invoke_async(the_one(aws.terminate(&node.instance_id).await.expect("it terminates"))));
    }
    while drained < EXECUTIONS {
        tokio::select! {
            Some(event) = invoked.recv() => drains.push(lambda.invoke_async(event)),
            Some(delivery) = drains.next() => {
                let delivery = delivery.expect("the queue works");
                match &*ending(&delivery) {
                    "continued" => {}
                    "drained" => drained += 1,
                    _ => panic!("{delivery:#?}"),
                }
                waits.push(waited(&delivery));
            }
            delivery = &mut spot, if spots.is_none() => {
                spots = Some(delivery);
                let budgets = Api::<PodDisruptionBudget>::namespaced(client.clone(), NAME);
                budgets.delete("none", &DeleteParams::default()).await.expect("it is deleted");
            }
        }
    }
    invoking.abort();

    for node in &blocked {
        let action = &aws.instance(&node.instance_id).await.expect("it is known").actions[0];
        assert_eq!(action.result.as_deref(), Some("CONTINUE"), "{action:?}");
    }
    let spot = spots.expect("the hooks are blocked until it ends");
    println!(
        "the spot notice waited {:?} for an execution ({}), a continuation {:?} at most",
        waited(&spot),
        ending(&spot),
        waits[EXECUTIONS..].iter().max()
    );
}

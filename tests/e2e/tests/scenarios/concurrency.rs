//! An account with ten concurrent executions: a spot notice and continuations beside ten blocked hooks.
//!
//! Reason: process.

use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use spillway_bed::aws::Hook;
use spillway_bed::lambda::{Delivery, Lambda, LambdaOptions};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, TestNode};
use spillway_e2e::{SPOT, ended, the_one, world};
use tokio::task::JoinSet;
use tokio::time::Instant;

const NAME: &str = "ten-executions";
const EXECUTIONS: usize = 10;
/// 15 minutes on Lambda. The drain keeps five seconds back.
const INVOCATION: Duration = Duration::from_secs(20);

async fn deliver(event: Value, lambda: Lambda) -> Delivery {
    lambda.invoke_async(event).await.expect("the queue works")
}

/// Prints both waits and asserts no difference of clocks. docs/what-happens.md has the figures of one run.
#[tokio::test]
async fn spot_notice_waits_behind_ten_blocked_hooks() {
    let world = world().await;
    let (client, aws) = (world.admin(), world.aws_side());
    let hook = Hook::terminate("spillway").heartbeat_timeout(Duration::from_mins(10));
    aws.put_group(NAME, &[hook]).await.expect("the group is new");
    pods::create_namespace(&client, NAME).await.expect("the namespace is new");
    let blocked = (0..EXECUTIONS).map(async |number| {
        let node = world.add_node(NodeOptions::in_group(NAME)).await.expect("the node joins");
        let shape = PodShape::default().on_node(&node.name);
        pods::run_deployment(&client, NAME, &format!("db-{number}"), 1, &shape).await.expect("its pod runs");
        node
    });
    let blocked: Vec<TestNode> = join_all(blocked).await;
    let spot = world.add_node(NodeOptions::spot()).await.expect("the node joins").instance_id;
    let budget =
        json!({"metadata": {"namespace": NAME, "name": "none"}, "spec": {"maxUnavailable": 0, "selector": {}}});
    let budget: PodDisruptionBudget = serde_json::from_value(budget).expect("a budget");
    pods::create_budget(&client, &budget, EXECUTIONS).await.expect("the budget counts its pods");
    let budgets = Api::<PodDisruptionBudget>::namespaced(client.clone(), NAME);
    let lambda = LambdaOptions {
        function_name: NAME.to_owned(),
        timeout: INVOCATION,
        reserved_concurrency: Some(EXECUTIONS),
        wait_factor: 1.0,
        ..LambdaOptions::default()
    };
    let lambda = Lambda::start(world, lambda).await.expect("a function");

    let began = Instant::now();
    let mut drains = JoinSet::new();
    for node in &blocked {
        let event = the_one(aws.terminate(&node.instance_id).await.expect("Auto Scaling terminates"));
        drains.spawn(deliver(event, lambda.clone()));
    }
    let event = the_one(aws.interrupt(&spot, SPOT).await.expect("EC2 interrupts"));
    let spot = tokio::spawn(deliver(event, lambda.clone()));
    let mut continuation = Box::pin(aws.wait_for_delivery(lambda.access_key_id()));
    let (mut continued, mut drained, mut longest) = (0, 0, Duration::ZERO);
    while drained < EXECUTIONS {
        tokio::select! {
            delivered = &mut continuation => {
                drains.spawn(deliver(delivered.expect("a drain continues").event, lambda.clone()));
                continuation = Box::pin(aws.wait_for_delivery(lambda.access_key_id()));
            }
            Some(delivery) = drains.join_next() => {
                let delivery: Delivery = delivery.expect("no panic");
                longest = longest.max(delivery.waits.iter().sum());
                match &*ended(&delivery.last).0 {
                    "drained" => drained += 1,
                    "continued" => {
                        continued += 1;
                        // Each drain has continued once.
                        if continued == EXECUTIONS {
                            println!("the executions were held for {:?}", began.elapsed());
                            budgets.delete("none", &DeleteParams::default()).await.expect("the budget existed");
                        }
                    }
                    _ => panic!("{delivery:#?}"),
                }
            }
        }
    }

    let spot = spot.await.expect("no panic");
    println!("the spot notice waited {:?}, a continuation {longest:?} at most", spot.waits.iter().sum::<Duration>());
    assert_eq!(ended(&spot.last).0, "drained", "{spot:#?}");
    assert!(!spot.waits.is_empty(), "{spot:#?}");
    for node in &blocked {
        let action = &aws.instance(&node.instance_id).await.expect("the instance is known").actions[0];
        assert_eq!(action.result.as_deref(), Some("CONTINUE"), "{action:?}");
    }
}

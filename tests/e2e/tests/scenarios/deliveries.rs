//! How a notice comes to the function when not all goes well on the way: late, again, twice, out of order, or not at all.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::chance::swap_neighbours;
use spillway_e2e::{Stage, fates, receipt, sample, spot_notice};

const PODS: u32 = 2;
const SPOT: Duration = Duration::from_secs(120);

/// A spot notice that EC2 gave so long ago.
fn given_ago(stage: &Stage, seconds: i64) -> Value {
    spot_notice(&stage.node.instance_id, Timestamp::now() - SignedDuration::from_secs(seconds))
}

/// As the template says: the first retry is worth a try for a spot notice.
#[tokio::test]
async fn a_spot_drain_that_crashed_is_finished_by_lambdas_retry_a_minute_later_within_its_two_minutes() {
    let real_waits = LambdaOptions { wait_factor: 1.0, ..LambdaOptions::default() };
    let stage = Stage::set("crashed").await.with_function(real_waits).await;
    stage.deploy("web", PODS, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let gateway = stage.through_gateway().await;
    let held = Held::default();
    gateway.rules().add(Rule::new("create pods/eviction", Which::All, Fault::Hold(Side::Before, held.clone())));
    let event = stage.interrupt(SPOT).await;

    let crash = async {
        held.reached().await;
        stage.lambda.kill();
        gateway.rules().clear();
    };
    let (delivery, ()) = tokio::join!(stage.lambda.invoke_async(&event), crash);

    let delivery = delivery.expect("the queue works");
    assert_eq!(delivery.waits, [Duration::from_mins(1)]);
    let between = delivery.last.started.duration_since(delivery.failed[0].started);
    assert!(between >= SignedDuration::from_mins(1), "{delivery:#?}");
    let answer = delivery.last.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained", "{answer:#}");
    assert_eq!(fates(answer)["clean"], PODS as usize, "nobody is hurried: {answer:#}");
}

#[tokio::test]
async fn a_notice_that_finds_no_free_execution_is_handled_when_there_is_one() {
    let one_at_a_time = LambdaOptions { reserved_concurrency: Some(1), wait_factor: 0.2, ..LambdaOptions::default() };
    let stage = Stage::set("one-at-a-time").await.with_function(one_at_a_time).await;
    stage.deploy("web", PODS, PodShape::default()).await;
    let other = stage.world.add_node(NodeOptions { spot: true, ..NodeOptions::default() }).await.expect("it joins");
    let gateway = stage.through_gateway().await;
    let held = Held::default();
    gateway.rules().add(Rule::new("list pods", Which::Nth(1), Fault::Hold(Side::Before, held.clone())));
    let (first, second) = (stage.interrupt(SPOT).await, spot_notice(&other.instance_id, Timestamp::now()));

    let meanwhile = async {
        held.reached().await;
        let refused = async {
            stage.lambda.until_refused(3).await;
            held.release();
        };
        tokio::join!(stage.lambda.invoke_async(&second), refused).0
    };
    let (first, second) = tokio::join!(stage.lambda.invoke_async(&first), meanwhile);

    let (first, second) = (first.expect("the queue works"), second.expect("the queue works"));
    for delivery in [&first, &second] {
        assert_eq!(receipt(&delivery.last)["ending"], "drained", "{delivery:#?}");
        assert!(
            delivery.failed.is_empty() && delivery.failure_record.is_none(),
            "to wait is no failure: {delivery:#?}"
        );
    }
    assert!(first.waits.is_empty());
    assert!(second.waits.starts_with(&[1, 2].map(Duration::from_secs)), "{:?}", second.waits);
}

#[tokio::test]
async fn a_notice_that_finds_no_free_execution_in_the_templates_hour_is_kept() {
    let one_at_a_time = LambdaOptions { reserved_concurrency: Some(1), ..LambdaOptions::default() };
    let stage = Stage::set("no-execution").await.with_function(one_at_a_time).await;
    let gateway = stage.through_gateway().await;
    let held = Held::default();
    gateway.rules().add(Rule::new("list pods", Which::All, Fault::Hold(Side::Before, held.clone())));
    let (first, second) = (stage.interrupt(SPOT).await, spot_notice("i-0123456789abcdef0", Timestamp::now()));

    let meanwhile = async {
        held.reached().await;
        let delivery = stage.lambda.invoke_async(&second).await;
        held.release();
        delivery.expect("the queue works")
    };
    let (_, delivery) = tokio::join!(stage.lambda.invoke(&first), meanwhile);

    let record = delivery.failure_record.expect("it is kept");
    assert_eq!(record["requestContext"]["condition"], "EventAgeExceeded");
    assert_eq!(record["requestPayload"], second);
    let waited: Duration = delivery.waits.iter().sum();
    let hour = Duration::from_hours(1);
    assert!(waited <= hour && waited + Duration::from_mins(6) > hour, "{waited:?}");
}

/// All that AWS says of an instance that it takes away, in whatever order and however often.
#[tokio::test]
async fn notices_out_of_their_order_and_twice_empty_the_node_and_complete_the_hook() {
    for round in 0..3 {
        let name = format!("disorder-{round}");
        let stage = Stage::set_in_group(&name, Hook::terminate("spillway")).await;
        stage.deploy("web", PODS, PodShape::default().exits_after(Duration::from_secs(1))).await;
        let pods = pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list");
        let mut events = [given_ago(&stage, 5), stage.terminate().await, given_ago(&stage, 0), shutting_down(&stage)];
        events[2]["id"] = json!(format!("{name}-second-warning"));
        swap_neighbours(&name, &mut events);

        let mut outcomes = Vec::new();
        for event in events {
            outcomes.push(stage.deliver(event).await);
        }

        let evicted: Vec<Value> = outcomes
            .iter()
            .flat_map(|outcome| receipt(outcome)["pods"].as_array().cloned().unwrap_or_default())
            .filter(|pod| pod["answers"]["evicted"] == 1)
            .map(|pod| pod["uid"].clone())
            .collect();
        assert_eq!(evicted.len(), pods.len(), "each once: {outcomes:#?}");
        let actions = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known").actions;
        assert_eq!(actions[0].result.as_deref(), Some("CONTINUE"), "{actions:?}");
        assert_eq!(actions[0].ended_by.as_deref(), Some("call"), "{actions:?}");
    }
}

/// EC2's word that an instance ends. It lives on here, as its node does.
fn shutting_down(stage: &Stage) -> Value {
    let mut event = sample("state-change-shutting-down");
    event["id"] = json!(format!("shutting-down-{}", stage.name));
    event["time"] = given_ago(stage, 0)["time"].clone();
    event["detail"]["instance-id"] = json!(stage.node.instance_id);
    event
}

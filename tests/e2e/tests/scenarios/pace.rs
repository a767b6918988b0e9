//! The pace of planned drains: four nodes of one group and zone with one maintenance, of which two may drain at once.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::Value;
use spillway_bed::NodeOptions;
use spillway_bed::lambda::{LambdaOptions, Outcome};
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, ended, world};

const NODES: usize = 4;
const AT_ONCE: usize = 2;
/// Nobody else has nodes there.
const ZONE: &str = "us-east-1d";

/// From when to when pods of a node were evicted, by its receipt: from its first eviction to the end of its drain.
fn drained_at(outcome: &Outcome) -> (Timestamp, Timestamp) {
    let receipt = spillway_e2e::receipt(outcome);
    let pods = receipt["pods"].as_array().expect("pods").iter();
    let first = pods.map(|pod| at(&receipt, &pod["requested_ms"])).min().expect("two pods");
    (first, ended_at(outcome))
}

/// When a node was drained, by its receipt.
fn ended_at(outcome: &Outcome) -> Timestamp {
    let receipt = spillway_e2e::receipt(outcome);
    let mut steps = receipt["steps"].as_array().expect("steps").iter();
    let over = steps.find(|step| step["step"] == "drained").expect("it is drained");
    at(&receipt, &over["at_ms"])
}

fn at(receipt: &Value, ms: &Value) -> Timestamp {
    let notice: Timestamp = receipt["notice"]["time"].as_str().and_then(|time| time.parse().ok()).expect("a time");
    notice + jiff::SignedDuration::from_millis(ms.as_i64().expect("milliseconds"))
}

#[tokio::test]
async fn of_four_nodes_with_one_maintenance_two_drain_at_once_and_the_others_in_their_turn() {
    let in_zone = || NodeOptions { zone: ZONE.to_owned(), group: Some("pace".to_owned()), ..NodeOptions::default() };
    world().await.aws_side().put_group("pace", &[]).await.expect("the group is new");
    let mut stage = Stage::set_with("pace", in_zone()).await;
    let env = [("SPILLWAY_MAINTENANCE_LEAD_S", "3600"), ("SPILLWAY_MAINTENANCE_AT_ONCE", "2")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    stage = stage.with_function(LambdaOptions { env, ..LambdaOptions::default() }).await;
    let mut all = vec![stage.node.clone()];
    while all.len() < NODES {
        all.push(stage.world.add_node(in_zone()).await.expect("it joins"));
    }
    let client = stage.world.admin();
    for (number, node) in all.iter().enumerate() {
        let shape = PodShape::default().exits_after(Duration::from_secs(5)).on_node(&node.name);
        pods::run_deployment(&client, "pace", &format!("web-{number}"), 2, &shape).await.expect("its pods run");
    }
    // The first half of the lead is past: all begin at once.
    let starts = in_s(1500);
    let mut waiting: Vec<Value> = Vec::new();
    for (number, node) in all.iter().enumerate() {
        let notice = Maintenance::of(&node.instance_id, starts).notice(&format!("maintenance-{number}"));
        waiting.push(stage.delivered(&notice).await);
    }

    let (mut drains, mut rounds) = (Vec::new(), 0);
    while !waiting.is_empty() {
        rounds += 1;
        assert!(rounds <= NODES, "{rounds} rounds, and {} wait", waiting.len());
        let outcomes = join_all(waiting.drain(..).map(|event| stage.lambda.invoke(event))).await;
        let (postponed, drained): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|one| ended(one).0 == "continued");
        assert!(!drained.is_empty(), "{postponed:#?}");
        for one in &postponed {
            let (_, reason) = ended(one);
            assert!(reason.contains("; its drain is postponed until ") && reason.contains(" is given back until then"));
        }
        for one in &drained {
            assert_eq!(ended(one).0, "drained", "{one:#?}");
        }
        drains.extend(drained.iter().map(drained_at));
        // Their turn comes in minutes: what brings them back then is there.
        let schedules =
            stage.world.aws_side().schedules(stage.lambda.access_key_id()).await.expect("Scheduler is there");
        let next: BTreeMap<_, _> = schedules
            .into_iter()
            .filter(|one| one.input.get("spillway-continuation").is_some())
            .map(|one| (one.name.split('.').next().map(str::to_owned), one))
            .collect();
        assert_eq!(next.len(), postponed.len());
        for schedule in next.into_values() {
            assert!(in_s(60) < schedule.at && schedule.at < in_s(360), "{schedule:?}");
            waiting.push(schedule.input);
        }
    }

    assert_eq!(drains.len(), NODES);
    for (from, _) in &drains {
        let at_once = drains.iter().filter(|(begin, end)| begin <= from && from < end).count();
        assert!(at_once <= AT_ONCE, "{at_once} at {from}: {drains:#?}");
    }
}

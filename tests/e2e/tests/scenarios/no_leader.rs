//! Concurrent notices of a node, without a leader: the node is drained once, each notice has a receipt, each hook is completed.
//!
//! Reason: process.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;
use spillway_bed::NodeOptions;
use spillway_bed::aws::Hook;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, ended, fates, receipt, spot_notice, world};

#[tokio::test]
async fn concurrent_notices_drain_once_and_complete_every_hook() {
    let name = "six-at-once";
    let hooks = ["spillway", "traces"];
    world().await.aws_side().put_group(name, &hooks.map(Hook::terminate)).await.expect("the group is new");
    let stage = Stage::set_with(name, NodeOptions::in_group(name)).await;
    let mut stage = stage.with_settings(&[("SPILLWAY_HOOKS", "spillway,traces")]).await;
    // Slow: the pods are still there when the other invocations list them.
    stage.deploy("web", 20, PodShape::default().exits_after(Duration::from_secs(25))).await;
    let pods = pods::on_node(&stage.client(), &stage.node.name).await.expect("a list");
    let mut events = vec![spot_notice(&stage.node.instance_id, Timestamp::now())];
    let delivered = stage.aws().terminate(&stage.node.instance_id).await.expect("Auto Scaling terminates");
    events.extend(delivered.into_iter().map(|delivered| delivered.event));
    assert_eq!(events.len(), 3, "{events:#?}");

    // Each event is delivered twice, each time to a process of its own.
    let invocations = join_all(events.iter().chain(&events).map(|event| stage.lambda.invoke(event)));
    let outcomes = stage.joined_after_evictions(20, invocations).await;

    assert_eq!(stage.lambda.process_ids().len(), 6);
    let mut endings: Vec<String> = outcomes.iter().map(|outcome| ended(outcome).0).collect();
    endings.sort();
    assert_eq!(endings, ["drained", "joined", "joined", "joined", "joined", "joined"], "{outcomes:#?}");
    for outcome in &outcomes {
        assert_eq!(fates(&receipt(outcome)), [("clean".to_owned(), 20)].into(), "each receipt has every pod");
    }
    let lines = outcomes.iter().flat_map(|outcome| &outcome.logs).filter(|line| line.contains("\"_aws\""));
    let counted = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()?["PodsClean"].as_u64());
    assert_eq!(counted.sum::<u64>(), 20, "one receipt counts the pods");
    let mut evictions = BTreeMap::<String, usize>::new();
    for request in stage.requests().into_iter().filter(spillway_bed::audit::Request::is_granted_eviction) {
        *evictions.entry(request.name).or_default() += 1;
    }
    assert_eq!(evictions, pods.iter().map(|pod| (pod.name_any(), 1)).collect());
    let actions = stage.instance().await.actions.into_iter().map(|action| (action.result, action.ended_by));
    let completed = (Some("CONTINUE".to_owned()), Some("call".to_owned()));
    assert_eq!(actions.collect::<Vec<_>>(), [completed.clone(), completed]);
}

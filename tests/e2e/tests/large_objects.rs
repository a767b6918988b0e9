//! Objects nearly as large as etcd takes them, and many of them: what the function has in memory does not grow with them.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::api::WatchParams;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::watch::{Objects, until};
use spillway_e2e::{Stage, ended, fates, receipt, spot_notice};

/// A quarter of what the function has by default.
const MEMORY: u64 = 64 << 20;
/// Of each kind: those that have finished, and those that a budget blocks. The API server tells of each in one piece when
/// it is deleted, too.
const PODS: usize = 30;
const POD_BYTES: usize = 800_000;
const BUDGETS: usize = 300;
const BUDGET_BYTES: usize = 100_000;
const CREATED_AT_ONCE: usize = 4;

fn large() -> PodShape {
    let env = json!([{"name": "LARGE", "value": "x".repeat(POD_BYTES - 200_000)}]);
    PodShape::default().with(json!({
        "metadata": {"annotations": {"large": "y".repeat(200_000)}},
        "spec": {"containers": [{"name": "main", "image": "example.test/main", "env": env}]},
    }))
}

async fn create<K>(stage: &Stage, objects: impl Iterator<Item = K>)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let client = stage.world.admin();
    let creations = objects.map(|object| {
        let client = client.clone();
        async move { pods::create(&client, &object).await.map(drop).expect("it is new") }
    });
    stream::iter(creations).buffer_unordered(CREATED_AT_ONCE).collect::<()>().await;
}

#[tokio::test]
async fn a_node_of_large_pods_in_a_namespace_of_large_budgets_is_drained_within_64_mib() {
    let stage = Stage::set("large-objects").await;
    let (client, name) = (stage.world.admin(), stage.name.as_str());
    let shape = |shape: PodShape| shape.grace(60).exits_after(Duration::from_secs(1)).bound_to(&stage.node.name);
    let (finished, blocked) = (shape(large().completes_after(Duration::ZERO)), shape(large()));
    create(&stage, (0..PODS).map(|n| pods::bare_pod(name, &format!("finished-{n}"), &finished))).await;
    let labelled = blocked.with(json!({"metadata": {"labels": {"app": "blocked"}}}));
    create(&stage, (0..PODS).map(|n| pods::bare_pod(name, &format!("blocked-{n}"), &labelled))).await;
    create(&stage, std::iter::once(pods::budget(name, "blocked", u32::MAX >> 1))).await;
    let budgets = (0..BUDGETS).map(|n| {
        let mut budget = pods::budget(name, &format!("other-{n}"), 1);
        budget.metadata.annotations = Some([("large".to_owned(), "z".repeat(BUDGET_BYTES))].into());
        budget
    });
    create(&stage, budgets).await;
    pods::until_running_on(&client, &stage.node.name, PODS).await.expect("they run");
    let count = i32::try_from(PODS).expect("a few");
    pods::until_budget_sees(&client, name, "blocked", count).await.expect("it counts");
    let all = WatchParams::default().fields("status.phase=Succeeded");
    until(
        &Api::<Pod>::namespaced(client, name),
        &all,
        "the others to finish",
        Duration::from_mins(1),
        |pods: &Objects<Pod>| {
            if pods.len() >= PODS { Ok(()) } else { Err(format!("{} have", pods.len())) }
        },
    )
    .await
    .expect("they finish");

    // Half of the two minutes is for the budget and half for the deletions: a busy API server takes seconds for each.
    let notice = spot_notice(&stage.node.instance_id, Timestamp::now());
    let outcome = stage.lambda.invoke(notice).await;

    let told = receipt(&outcome);
    let expected = [("clean", PODS), ("forced", PODS)].map(|(fate, pods)| (fate.to_owned(), pods)).into();
    assert_eq!(fates(&told), expected, "{:?}", ended(&outcome));
    let peak = stage.lambda.peak_memory().expect("it runs");
    assert!(peak <= MEMORY, "{} MiB", peak >> 20);
}

//! A world is real while it lasts, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::usage::processes_naming;
use spillway_bed::{NodeOptions, World, nodes};

#[tokio::test]
async fn world_is_real_and_leaves_nothing_behind() {
    let world = World::start().await.unwrap();
    request_without_a_token_is_refused(&world).await;
    pod_held_by_its_budget_is_not_evicted(&world).await;
    terminated_instance_takes_its_node_with_it(&world).await;

    let dir = world.dir.clone();
    assert!(processes_naming(&dir).unwrap().len() >= 7, "the world's processes are counted");
    drop(world);
    assert_eq!(processes_naming(&dir).unwrap(), [], "nothing runs");
    assert!(!dir.exists(), "the folder is gone");
}

async fn request_without_a_token_is_refused(world: &World) {
    let mut stranger = kube::Config::new(world.api_server.parse().unwrap());
    stranger.accept_invalid_certs = true;
    let pods = Api::<Pod>::all(Client::try_from(stranger).unwrap());
    let error = pods.list(&kube::api::ListParams::default()).await.unwrap_err();
    assert_eq!(code(&error), Some(401), "{error}");
}

async fn pod_held_by_its_budget_is_not_evicted(world: &World) {
    let client = world.admin();
    let node = world.add_node(NodeOptions::default()).await.unwrap();
    pods::create_namespace(&client, "held").await.unwrap();
    let shape = PodShape::default().on_node(&node.name);
    pods::create(&client, &pods::deployment("held", "web", 2, &shape)).await.unwrap();
    let held = pods::until_running_of(&client, "held", "web", 2).await.unwrap();
    pods::create_budget(&client, &pods::budget("held", "web", 2), 2).await.unwrap();
    let error = evict(&client, held[0].metadata.name.as_deref().unwrap()).await.unwrap_err();
    assert_eq!(code(&error), Some(429), "{error}");
}

async fn terminated_instance_takes_its_node_with_it(world: &World) {
    let aws = world.aws_side();
    aws.put_group("without-hooks", &[]).await.unwrap();
    let node = world.add_node(NodeOptions::in_group("without-hooks")).await.unwrap();
    aws.terminate(&node.instance_id).await.unwrap();
    nodes::until_gone(&world.admin(), &node.name).await.unwrap();
}

async fn evict(client: &Client, pod: &str) -> kube::Result<()> {
    let metadata = ObjectMeta { name: Some(pod.to_owned()), ..ObjectMeta::default() };
    let eviction = Eviction { metadata, ..Eviction::default() };
    let pods = Api::<Pod>::namespaced(client.clone(), "held");
    let answer: kube::Result<serde_json::Value> =
        pods.create_subresource("eviction", pod, &PostParams::default(), &eviction).await;
    answer.map(drop)
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

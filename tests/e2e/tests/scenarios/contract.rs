//! The real API server answers as the simulation's does (`tests/contract`).
//!
//! Reason: API semantics.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, World};
use spillway_contract::{Conversation, Server, conversations};
use spillway_e2e::world;

/// The world's API server, for one namespace.
struct Real {
    client: kube::Client,
    namespace: String,
}

impl Server for Real {
    async fn request(&mut self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let kind = match (method, body) {
            ("PATCH", Value::Array(_)) => "application/json-patch+json",
            ("PATCH", _) => "application/strategic-merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(body.into()).expect("a request");
        let response = self.client.send(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        let body = body.collect_bytes().await.expect("a body");
        (head.status.as_u16(), String::from_utf8(body.to_vec()).expect("text"))
    }

    async fn until_gone(&mut self, pod: &str) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        if let Some(there) = pods.get_opt(pod).await.expect("an answer") {
            pods::until_gone(&self.client, &there).await.expect("the pod goes");
        }
    }
}

/// Sets up a conversation in a namespace and on a node of its own.
async fn set_up(world: &World, number: usize, conversation: &Conversation) -> (Real, BTreeMap<String, String>) {
    let (client, namespace) = (world.admin(), format!("contract-{number}"));
    pods::create_namespace(&client, &namespace).await.expect("the namespace is new");
    let node = world.add_node(NodeOptions::default()).await.expect("the node joins").name;
    let mut names = BTreeMap::from([("namespace".to_owned(), namespace.clone()), ("node".to_owned(), node.clone())]);
    let shape = PodShape::default().on_node(&node).exits_after(Duration::from_secs(1)).grace(30);
    let shape = shape.with(json!({"metadata": {"labels": {"app": "app-0"}}}));
    for number in 0..conversation.pods {
        let pod = pods::bare_pod(&namespace, &format!("app-0-{number}"), &shape);
        let pod = pods::create(&client, &pod).await.expect("a pod");
        names.insert(format!("uid:{}", pod.name_any()), pod.uid().expect("a UID"));
    }
    pods::until_running_on(&client, &node, conversation.pods).await.expect("the pods run");
    for (number, least) in conversation.min_available.iter().enumerate() {
        let (name, least) = (format!("budget-0-{number}"), u32::try_from(*least).expect("few"));
        let mut budget = pods::budget(&namespace, "app-0", least);
        budget.metadata.name = Some(name);
        pods::create_budget(&client, &budget, conversation.pods).await.expect("the budget counts its pods");
    }
    (Real { client, namespace }, names)
}

#[tokio::test]
async fn real_api_server_answers_as_the_simulated_one_does() {
    let (world, conversations) = (world().await, conversations());
    let held = conversations.iter().enumerate().map(async |(number, conversation)| {
        let (mut server, names) = set_up(world, number, conversation).await;
        conversation.hold(&mut server, names).await;
    });
    join_all(held).await;
}

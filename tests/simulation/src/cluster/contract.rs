//! Conversations that a real API server has as well (`tests/contract`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use spillway_contract::{Conversation, Server, conversations};
use tokio::time::sleep;

use super::{ApiAnswer, ApiRequest};
use crate::function::next_line;
use crate::lambda::{AttemptId, LambdaEvent};
use crate::plan::{App, Needs, Owner, Plan};
use crate::simulation::Shared;

/// The API server of a simulation in which nothing happens by itself but in the cluster.
struct InMemory(Shared);

impl Server for InMemory {
    async fn ask(&mut self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let (method, uri) = (method.parse().expect("a method"), path.parse().expect("a URI"));
        let request = ApiRequest::read((AttemptId(0), 0), &method, &uri, body.to_string().as_bytes());
        let answer = self.0.lock().ask_cluster(&request);
        match answer {
            ApiAnswer::Says(code, body) => (code, body),
            ApiAnswer::Watches(mut watch) => {
                let mut told = String::new();
                while let Some(line) = next_line(&self.0, &mut watch).await {
                    told += &line.expect("it ends well");
                }
                (200, told)
            }
        }
    }

    async fn until_gone(&mut self, pod: &str) {
        while self.0.lock().clusters[0].pods.values().any(|there| there.name == pod) {
            sleep(Duration::from_secs(1)).await;
            self.0.lock().step();
        }
    }
}

/// A node, and what the conversation begins with.
fn begun(conversation: &Conversation) -> (InMemory, BTreeMap<String, String>) {
    let app = App {
        owner: Owner::Nobody,
        on_first_node: true,
        budgets: conversation.min_available.len(),
        needs: Needs::MinAvailable(conversation.min_available.first().copied().unwrap_or(0)),
        ..App::plain(0)
    };
    let namespace = app.namespace().to_owned();
    let shared = Shared::of(Plan::quiet(vec![app]), 0, false);
    let mut simulation = shared.lock();
    simulation.set_up();
    // Whose requests they are.
    simulation.happens(LambdaEvent::Arrives(Value::Null).into());
    let cluster = &mut simulation.clusters[0];
    let node = cluster.nodes.keys().next().expect("a node").clone();
    let mut names = BTreeMap::from([("namespace".to_owned(), namespace), ("node".to_owned(), node.clone())]);
    for number in 0..conversation.pods {
        let uid = cluster.create_pod(0, Some(number), Some(node.clone()));
        names.insert(format!("uid:app-0-{number}"), uid);
    }
    cluster.count_budgets(0);
    drop(simulation);
    (InMemory(shared), names)
}

#[tokio::test(start_paused = true)]
async fn the_api_server_in_memory_answers_as_a_real_one_does() {
    for conversation in conversations() {
        let (mut server, names) = begun(&conversation);
        conversation.hold(&mut server, names).await;
    }
}

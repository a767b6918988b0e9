//! Conversations of `tests/contract`, which a real API server holds too.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use spillway_contract::{Conversation, Server, conversations};
use tokio::time::sleep;

use super::{ApiAnswer, ApiRequest};
use crate::function::next_line;
use crate::lambda::{AttemptId, LambdaEvent};
use crate::plan::{App, Owner, Plan};
use crate::simulation::Shared;

/// API server of a simulation without other events.
struct InMemory(Shared);

impl Server for InMemory {
    async fn request(&mut self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let (method, uri) = (method.parse().expect("a method"), path.parse().expect("a URI"));
        let request = ApiRequest::read((AttemptId(0), 0), &method, &uri, body.to_string().as_bytes());
        let answer = self.0.lock().answer_api(&request);
        match answer {
            ApiAnswer::Says(code, body) => (code, body),
            ApiAnswer::Watches(mut watch) => {
                let mut lines = String::new();
                while let Some(line) = next_line(&self.0, &mut watch).await {
                    lines += &line.expect("the watch does not break");
                }
                (200, lines)
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

/// Node, pods and budgets at the begin of a conversation.
fn begun(conversation: &Conversation) -> (InMemory, BTreeMap<String, String>) {
    let app = App {
        owner: Owner::Unowned,
        on_first_node: true,
        budgets: conversation.min_available.len(),
        needs: conversation.min_available.first().copied().unwrap_or(0),
        ..App::plain(0)
    };
    let namespace = app.namespace().to_owned();
    let shared = Shared::of(Plan::quiet(vec![app]), 0, false);
    let mut simulation = shared.lock();
    simulation.set_up();
    // The attempt that makes the requests.
    simulation.handle(LambdaEvent::Arrives(Value::Null).into());
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
async fn api_server_in_memory_holds_the_contract() {
    for conversation in conversations() {
        let (mut server, names) = begun(&conversation);
        conversation.hold(&mut server, names).await;
    }
}

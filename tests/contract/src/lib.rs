//! Conversations with an API server, held by the real one in the end-to-end tests and by the one in memory in the simulation.
//!
//! `api_server.json` has pods, budgets, requests and expected answers by JSON pointers (`null`: missing). The lines of a watch are
//! a list. `{name}` stands for a value of the server. `node` has rules for all API servers in memory.

pub mod node;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// API server of a cluster with one node and the pods `app-0-0`, `app-0-1` and so on.
pub trait Server {
    /// Returns the status and the whole body of the answer.
    fn request(&mut self, method: &str, path: &str, body: &Value) -> impl Future<Output = (u16, String)>;
    /// Waits for the removal of a pod.
    fn until_gone(&mut self, pod: &str) -> impl Future<Output = ()>;
}

#[derive(Debug, Deserialize)]
pub struct Conversation {
    title: String,
    /// Number of pods on the node.
    pub pods: usize,
    /// `minAvailable` of the budgets `budget-0-0`, `budget-0-1` and so on.
    #[serde(default)]
    pub min_available: Vec<usize>,
    turns: Vec<Turn>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Turn {
    Request {
        request: String,
        #[serde(default)]
        body: Value,
        code: u16,
        answer: BTreeMap<String, Value>,
        /// Names of values for later turns, with their places in the answer.
        #[serde(default)]
        keep: BTreeMap<String, String>,
    },
    Wait {
        until_gone: String,
    },
}

#[must_use]
pub fn conversations() -> Vec<Conversation> {
    serde_json::from_str(include_str!("api_server.json")).expect("the file has conversations")
}

impl Conversation {
    /// Holds the conversation with a server, and asserts its answers. `names` has `namespace`, `node`, and `uid:app-0-0` for each
    /// pod.
    pub async fn hold(&self, server: &mut impl Server, mut names: BTreeMap<String, String>) {
        names.insert("pods".to_owned(), format!("/api/v1/namespaces/{}/pods", names["namespace"]));
        for turn in &self.turns {
            match turn {
                Turn::Wait { until_gone } => server.until_gone(until_gone).await,
                Turn::Request { request, body, code, answer, keep } => {
                    let (method, path) = request.split_once(' ').expect("a method and a path");
                    let body = named_all(body, &names);
                    let (found_code, text) = server.request(method, &named(path, &names), &body).await;
                    let found = parsed(path, &text);
                    let about = format!("{}: {request}: {found_code} {text}", self.title);
                    assert_eq!(found_code, *code, "{about}");
                    for (place, expected) in answer {
                        let value = found.pointer(place).unwrap_or(&Value::Null);
                        assert_eq!(*value, named_all(expected, &names), "{place} of {about}");
                    }
                    for (name, place) in keep {
                        let value = found.pointer(place).and_then(Value::as_str);
                        names.insert(name.clone(), value.unwrap_or_else(|| panic!("no {place} in {about}")).to_owned());
                    }
                }
            }
        }
    }
}

/// Parses a body; the lines of a watch become a list.
fn parsed(path: &str, text: &str) -> Value {
    let json =
        |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"));
    if path.contains("watch=true") { text.lines().map(json).collect() } else { json(text) }
}

fn named(text: &str, names: &BTreeMap<String, String>) -> String {
    names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

fn named_all(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::from(named(text, names)),
        Value::Array(items) => items.iter().map(|item| named_all(item, names)).collect(),
        Value::Object(entries) => entries.iter().map(|(key, value)| (key.clone(), named_all(value, names))).collect(),
        other => other.clone(),
    }
}

//! Conversations with an API server. A real one has them in the end-to-end tests, and the one in memory in its own: so the
//! simulation is told what a cluster would tell.
//!
//! `api_server.json` has each: what there is at first, what is asked, and what the answer tells, by JSON pointers (`null`:
//! it has no such place). The lines of a watch are a list. `{name}` stands for what differs from server to server.
//!
//! `node` has what every API server in memory shares.

pub mod node;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A server, and the cluster behind it: one node, and the pods `app-0-0`, `app-0-1` and so on.
pub trait Server {
    /// Asks; the answer: its status, and its body to the end.
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> impl Future<Output = (u16, String)>;
    /// Waits until a pod is no more.
    fn until_gone(&mut self, pod: &str) -> impl Future<Output = ()>;
}

/// A conversation.
#[derive(Debug, Deserialize)]
pub struct Conversation {
    /// What it shows.
    pub says: String,
    /// How many pods run on the node.
    pub pods: usize,
    /// How many of them have to be available, by the budgets `budget-0-0`, `budget-0-1` and so on.
    #[serde(default)]
    pub min_available: Vec<usize>,
    talk: Vec<Turn>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Turn {
    Ask {
        ask: String,
        #[serde(default)]
        body: Value,
        code: u16,
        tells: BTreeMap<String, Value>,
        /// What of the answer is needed later: a name, and where it stands.
        #[serde(default)]
        keep: BTreeMap<String, String>,
    },
    Wait {
        until_gone: String,
    },
}

/// All conversations.
///
/// # Panics
/// If the file cannot be read.
#[must_use]
pub fn conversations() -> Vec<Conversation> {
    serde_json::from_str(include_str!("api_server.json")).expect("the file has conversations")
}

impl Conversation {
    /// Has it with a server, for which these names stand: `namespace`, `node`, and `uid:app-0-0` for each pod.
    ///
    /// # Panics
    /// When the server answers something else.
    pub async fn hold(&self, server: &mut impl Server, mut names: BTreeMap<String, String>) {
        names.insert("pods".to_owned(), format!("/api/v1/namespaces/{}/pods", names["namespace"]));
        for turn in &self.talk {
            match turn {
                Turn::Wait { until_gone } => server.until_gone(until_gone).await,
                Turn::Ask { ask, body, code, tells, keep } => {
                    let (method, path) = ask.split_once(' ').expect("a method and a path");
                    let body = named_all(body, &names);
                    let (answered, text) = server.ask(method, &named(path, &names), &body).await;
                    let answer = parsed(path, &text);
                    let about = format!("{}: {ask} was answered {answered} {text}", self.says);
                    assert_eq!(answered, *code, "{about}");
                    for (place, wanted) in tells {
                        let told = answer.pointer(place).unwrap_or(&Value::Null);
                        assert_eq!(*told, named_all(wanted, &names), "{place} of {about}");
                    }
                    for (name, place) in keep {
                        let told = answer.pointer(place).and_then(Value::as_str);
                        names.insert(name.clone(), told.unwrap_or_else(|| panic!("no {place} in {about}")).to_owned());
                    }
                }
            }
        }
    }
}

/// A body as JSON; the lines of a watch as a list.
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

//! From what was seen when all is quiet to what must not be. Pure.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::notice::{self, Kind};

/// What came of one delivery of an event, after all its attempts.
#[derive(Debug, Clone)]
pub(super) struct Handed {
    pub(super) kind: Kind,
    pub(super) event_id: String,
    pub(super) instance: String,
    pub(super) request_id: String,
    /// Receipts with the event's id in the logs of its attempts.
    pub(super) receipts: usize,
    /// By the receipt of its last attempt, if that has one.
    pub(super) ending: Option<String>,
    /// Of the attempts that failed, by their types.
    pub(super) errors: Vec<String>,
    /// Lines of the log that tell of a panic.
    pub(super) panics: Vec<String>,
}

/// What a node and its instance were like when nothing more was under way.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) node: String,
    pub(super) instance: String,
    /// Whether its instance goes on, so that it is to be in use.
    pub(super) goes_on: bool,
    /// Whether EC2 has taken its instance while a hook may have waited.
    pub(super) is_reclaimed: bool,
    /// What of ours is left on it: a cordon, a claim.
    pub(super) ours: Vec<String>,
    /// How each lifecycle action ended: `call` is by an answer. `None`: it waits.
    pub(super) hooks: Vec<Option<String>>,
}

/// All that was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) handed: Vec<Handed>,
    pub(super) nodes: Vec<Ended>,
    /// Lives that did not come to an end in time: the instance, or the number of the node.
    pub(super) restless: Vec<String>,
    /// The events in the failure queue.
    pub(super) given_up: Vec<Value>,
}

/// What must not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Violation {
    /// Neither a receipt nor a text in the failure queue.
    NoReceipt {
        notice: String,
        event_id: String,
        instance: String,
        request_id: String,
    },
    /// The function could have answered it.
    HookUnanswered {
        instance: String,
        node: String,
        ended_by: String,
        notices: String,
    },
    Panic {
        notice: String,
        event_id: String,
        instance: String,
        line: String,
    },
    /// On a node that is to be in use.
    LeftBehind {
        instance: String,
        node: String,
        what: String,
        notices: String,
    },
    /// Something goes on and on.
    NeverQuiet {
        instance: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReceipt { notice, event_id, instance, request_id } => write!(
                f,
                "no receipt and no text in the failure queue: {notice} {event_id} of {instance}, request {request_id}"
            ),
            Self::HookUnanswered { instance, node, ended_by, notices } => {
                write!(f, "hook unanswered: that of {instance}, node {node}, ended by {ended_by}; notices: {notices}")
            }
            Self::Panic { notice, event_id, instance, line } => {
                write!(f, "panic: {notice} {event_id} of {instance}: {line}")
            }
            Self::LeftBehind { instance, node, what, notices } => {
                write!(f, "left on a node that is to be in use: {what} on {node} of {instance}; notices: {notices}")
            }
            Self::NeverQuiet { instance } => write!(f, "never quiet: {instance}"),
        }
    }
}

/// What must not be, of all that was seen.
pub(super) fn violations(seen: &Seen) -> Vec<Violation> {
    let Seen { handed, nodes, restless, given_up } = seen;
    let is_given_up = |event_id: &str| given_up.iter().any(|event| notice::event_id(event) == event_id);
    let notices = |instance: &str| {
        let own = handed.iter().filter(|one| one.instance == instance);
        let named: BTreeSet<String> = own.map(|one| format!("{} {}", one.kind.in_words(), one.event_id)).collect();
        named.into_iter().collect::<Vec<_>>().join(", ")
    };
    let concerns = |instance: &str| given_up.iter().any(|event| notice::is_about(event, instance));
    let mut violations = Vec::new();
    for one in handed {
        let (notice, event_id, instance) = (one.kind.in_words().to_owned(), one.event_id.clone(), one.instance.clone());
        for line in one.panics.iter().cloned() {
            let (notice, event_id, instance) = (notice.clone(), event_id.clone(), instance.clone());
            violations.push(Violation::Panic { notice, event_id, instance, line });
        }
        if one.receipts == 0 && !is_given_up(&event_id) {
            let request_id = one.request_id.clone();
            violations.push(Violation::NoReceipt { notice, event_id, instance, request_id });
        }
    }
    for ended in nodes.iter().filter(|ended| !concerns(&ended.instance)) {
        let (instance, node) = (&ended.instance, &ended.node);
        for ended_by in ended.hooks.iter().filter(|_| !ended.is_reclaimed) {
            if ended_by.as_deref() != Some("call") {
                let ended_by = ended_by.clone().unwrap_or_else(|| "nobody yet".to_owned());
                let (instance, node) = (instance.clone(), node.clone());
                let notices = notices(&instance);
                violations.push(Violation::HookUnanswered { instance, node, ended_by, notices });
            }
        }
        for what in ended.ours.iter().filter(|_| ended.goes_on) {
            let (instance, node, what) = (instance.clone(), node.clone(), what.clone());
            let notices = notices(&instance);
            violations.push(Violation::LeftBehind { instance, node, what, notices });
        }
    }
    violations.extend(restless.iter().map(|instance| Violation::NeverQuiet { instance: instance.clone() }));
    violations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const INSTANCE: &str = "i-0123456789abcdef0";

    fn handed() -> Handed {
        Handed {
            kind: Kind::Spot,
            event_id: "n-1".to_owned(),
            instance: INSTANCE.to_owned(),
            request_id: "r-1".to_owned(),
            receipts: 1,
            ending: Some("drained".to_owned()),
            errors: Vec::new(),
            panics: Vec::new(),
        }
    }

    fn ended() -> Ended {
        Ended {
            node: "node-1".to_owned(),
            instance: INSTANCE.to_owned(),
            goes_on: true,
            is_reclaimed: false,
            ours: Vec::new(),
            hooks: vec![Some("call".to_owned())],
        }
    }

    fn seen(handed: Handed, ended: Ended) -> Seen {
        Seen { handed: vec![handed], nodes: vec![ended], ..Seen::default() }
    }

    /// What is told of it, with and without the notice's text in the failure queue.
    fn told(mut seen: Seen) -> [Vec<String>; 2] {
        let texts = |seen: &Seen| violations(seen).iter().map(ToString::to_string).collect();
        let without = texts(&seen);
        seen.given_up = vec![json!({"id": "n-1", "detail": {"instance-id": INSTANCE}})];
        [without, texts(&seen)]
    }

    #[test]
    fn what_went_well_breaks_nothing() {
        assert_eq!(told(seen(handed(), ended())), [Vec::<String>::new(), Vec::new()]);
    }

    #[test]
    fn a_notice_has_a_receipt_or_a_text_in_the_failure_queue() {
        let lost = seen(Handed { receipts: 0, ..handed() }, ended());
        let text =
            "no receipt and no text in the failure queue: spot interruption n-1 of i-0123456789abcdef0, request r-1";
        assert_eq!(told(lost), [vec![text.to_owned()], Vec::new()]);
    }

    #[test]
    fn a_hook_is_answered_unless_its_instance_was_reclaimed_or_its_notice_given_up() {
        for (ended_by, word) in [(Some("expiry"), "expiry"), (None, "nobody yet")] {
            let hooks = vec![ended_by.map(str::to_owned)];
            let text = format!(
                "hook unanswered: that of {INSTANCE}, node node-1, ended by {word}; notices: spot interruption n-1"
            );
            let unanswered = Ended { hooks: hooks.clone(), ..ended() };
            assert_eq!(told(seen(handed(), unanswered)), [vec![text], Vec::new()]);
            let reclaimed = Ended { hooks, is_reclaimed: true, ..ended() };
            assert_eq!(told(seen(handed(), reclaimed)), [Vec::<String>::new(), Vec::new()]);
        }
    }

    #[test]
    fn a_panic_is_never_allowed() {
        let line = "thread 'main' panicked at src/main.rs:1:1";
        let text = format!("panic: spot interruption n-1 of {INSTANCE}: {line}");
        let panicked = seen(Handed { panics: vec![line.to_owned()], ..handed() }, ended());
        assert_eq!(told(panicked), [vec![text.clone()], vec![text]]);
    }

    #[test]
    fn nothing_of_ours_is_left_on_a_node_that_is_to_be_in_use() {
        let ours = vec!["a cordon".to_owned()];
        let text = format!(
            "left on a node that is to be in use: a cordon on node-1 of {INSTANCE}; notices: spot interruption n-1"
        );
        let left = Ended { ours: ours.clone(), ..ended() };
        assert_eq!(told(seen(handed(), left)), [vec![text], Vec::new()]);
        let gone = Ended { ours, goes_on: false, ..ended() };
        assert_eq!(told(seen(handed(), gone)), [Vec::<String>::new(), Vec::new()]);
    }

    #[test]
    fn what_never_comes_to_its_end_is_told() {
        let restless = Seen { restless: vec![INSTANCE.to_owned()], ..Seen::default() };
        assert_eq!(told(restless)[0], [format!("never quiet: {INSTANCE}")]);
    }
}

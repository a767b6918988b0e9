//! From what was seen when all is quiet to what must not be. Pure.
//!
//! An excuse is of one delivery, or of one pod's request: what failed at another time excuses nothing. Excuses are counted.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use spillway_bed::audit::Request;

use super::Counts;
use super::moved::{self, Figures, Said, Workload};
use super::notice::Kind;

/// What came of one delivery of an event, after all its attempts.
#[derive(Debug, Clone)]
pub(super) struct Handed {
    pub(super) kind: Kind,
    pub(super) event_id: String,
    pub(super) instance: String,
    pub(super) request_id: String,
    /// In their order; one at least.
    pub(super) attempts: Vec<Attempt>,
    /// Lines of the log that tell of a panic.
    pub(super) panics: Vec<String>,
}

/// One invocation.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// Receipts with the event's id in its log.
    pub(super) receipts: usize,
    /// By the last of them.
    pub(super) ending: Option<String>,
    /// Its type, if it failed.
    pub(super) error: Option<String>,
    /// What the receipts say of pods.
    pub(super) pods: Vec<Said>,
}

impl Attempt {
    /// Whether its process was killed before it could write a receipt.
    pub(super) fn is_killed(&self) -> bool {
        self.receipts == 0 && self.error.as_deref() == Some("Runtime.ExitError")
    }
}

impl Handed {
    pub(super) fn receipts(&self) -> usize {
        self.attempts.iter().map(|attempt| attempt.receipts).sum()
    }

    /// By the receipt of its last attempt, if that has one.
    pub(super) fn ending(&self) -> Option<&str> {
        self.attempts.last()?.ending.as_deref()
    }

    fn ended(&self) -> Option<Timestamp> {
        self.attempts.last().map(|attempt| attempt.to)
    }
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
    /// When that was.
    pub(super) looked: Timestamp,
    /// What of ours is left on it: a cordon, a claim.
    pub(super) ours: Vec<String>,
    /// How each lifecycle action ended: `call` is by an answer. `None`: it waits.
    pub(super) hooks: Vec<Option<String>>,
    /// The pods that it came with.
    pub(super) workload: Workload,
}

/// All that was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) handed: Vec<Handed>,
    pub(super) nodes: Vec<Ended>,
    /// Lives that did not come to an end in time: the instance, or the number of the node.
    pub(super) restless: Vec<String>,
    /// The ids of the requests that are in the failure queue.
    pub(super) given_up: BTreeSet<String>,
    /// What the function asked of the API server, by its audit log.
    pub(super) requests: Vec<Request>,
}

impl Seen {
    /// The deliveries about an instance.
    pub(super) fn about<'a>(&'a self, instance: &'a str) -> impl Iterator<Item = &'a Handed> {
        self.handed.iter().filter(move |one| one.instance == instance)
    }

    /// Whether this delivery failed to its last attempt, and is in the failure queue.
    pub(super) fn is_given_up(&self, one: &Handed) -> bool {
        self.given_up.contains(&one.request_id) && one.attempts.iter().all(|attempt| attempt.error.is_some())
    }

    /// Whether what was delivered last of a notice is in the failure queue. What came before it excuses nothing.
    pub(super) fn is_given_up_at_last(&self, event_id: &str) -> bool {
        let of_it = self.handed.iter().filter(|one| one.event_id == event_id);
        of_it.max_by_key(|one| one.ended()).is_some_and(|last| self.is_given_up(last))
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) violations: Vec<Violation>,
    /// What would have been one, by why it is none.
    pub(super) excuses: Counts,
    pub(super) figures: Figures,
}

impl Verdict {
    /// Notes a violation, unless it is excused.
    pub(super) fn note(&mut self, violation: Violation, excuse: Option<&str>) {
        match excuse {
            Some(excuse) => self.excuse(excuse, 1),
            None => self.violations.push(violation),
        }
    }

    pub(super) fn excuse(&mut self, excuse: &str, count: usize) {
        if count > 0 {
            *self.excuses.entry(excuse.to_owned()).or_default() += count;
        }
    }
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
    /// What was done to a pod, or was not.
    Pod {
        pod: String,
        node: String,
        what: String,
        notices: String,
    },
    /// Nothing else can be wrong with a run that did nothing.
    NothingEvicted,
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
            Self::Pod { pod, node, what, notices } => write!(f, "{what}: pod {pod} on {node}; notices: {notices}"),
            Self::NothingEvicted => write!(f, "no pod was evicted at all"),
        }
    }
}

/// What must not be, of all that was seen.
pub(super) fn of(seen: &Seen) -> Verdict {
    let mut verdict = Verdict::default();
    for one in &seen.handed {
        let (notice, event_id, instance) = (one.kind.in_words().to_owned(), one.event_id.clone(), one.instance.clone());
        for line in one.panics.iter().cloned() {
            let (notice, event_id, instance) = (notice.clone(), event_id.clone(), instance.clone());
            verdict.violations.push(Violation::Panic { notice, event_id, instance, line });
        }
        if one.receipts() == 0 {
            let request_id = one.request_id.clone();
            let excuse = seen.is_given_up(one).then_some("no receipt, but a record in the failure queue");
            verdict.note(Violation::NoReceipt { notice, event_id, instance, request_id }, excuse);
        }
    }
    for ended in &seen.nodes {
        let (instance, node, notices) = (&ended.instance, &ended.node, notices(seen, &ended.instance));
        for ended_by in ended.hooks.iter().filter(|ended_by| ended_by.as_deref() != Some("call")) {
            let excuse = excuse_of_hook(seen, ended, ended_by.as_deref());
            let (instance, node, notices) = (instance.clone(), node.clone(), notices.clone());
            let ended_by = ended_by.clone().unwrap_or_else(|| "nobody yet".to_owned());
            verdict.note(Violation::HookUnanswered { instance, node, ended_by, notices }, excuse);
        }
        for what in ended.ours.iter().filter(|_| ended.goes_on) {
            let excuse = is_left_by_given_up(seen, ended).then_some("left by a notice in the failure queue");
            let (instance, node, what) = (instance.clone(), node.clone(), what.clone());
            verdict.note(Violation::LeftBehind { instance, node, what, notices: notices.clone() }, excuse);
        }
    }
    let restless = seen.restless.iter().map(|instance| Violation::NeverQuiet { instance: instance.clone() });
    verdict.violations.extend(restless);
    moved::judge(seen, &mut verdict);
    verdict
}

/// The notices about an instance, each once.
pub(super) fn notices(seen: &Seen, instance: &str) -> String {
    let named = seen.about(instance).map(|one| format!("{} {}", one.kind.in_words(), one.event_id));
    named.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

/// Why a hook need not have been answered: by what became of its own notice, or of its instance while it waited.
fn excuse_of_hook(seen: &Seen, ended: &Ended, ended_by: Option<&str>) -> Option<&'static str> {
    if ended.is_reclaimed && ended_by.is_none() {
        return Some("a hook that waited when EC2 took the spot instance");
    }
    let mut own = seen.about(&ended.instance).filter(|one| one.kind == Kind::Terminate);
    own.any(|one| seen.is_given_up_at_last(&one.event_id)).then_some("a hook of a notice in the failure queue")
}

/// Whether what is left is of a notice that was given up before its node was looked at, or of one that was to give the node back.
fn is_left_by_given_up(seen: &Seen, ended: &Ended) -> bool {
    let before = |one: &&Handed| one.ended().is_some_and(|at| at <= ended.looked);
    let gives_back = |kind| matches!(kind, Kind::UndoCheck | Kind::MaintenanceOver | Kind::Running);
    let is_claimed_by = |one: &Handed| ended.ours.iter().any(|ours| ours.contains(&one.event_id));
    let mut own = seen.about(&ended.instance).filter(before);
    own.any(|one| (gives_back(one.kind) || is_claimed_by(one)) && seen.is_given_up_at_last(&one.event_id))
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::test_support::{BEGIN, request};

    pub(crate) const INSTANCE: &str = "i-0123456789abcdef0";

    /// A spot notice whose drain evicted the node's pod, from the first second to the fifth.
    pub(crate) fn handed() -> Handed {
        let attempt = Attempt {
            from: BEGIN + Duration::from_secs(1),
            to: BEGIN + Duration::from_secs(5),
            receipts: 1,
            ending: Some("drained".to_owned()),
            error: None,
            pods: vec![Said { pod: "web-1-0-0".to_owned(), evicted: 1, ..Said::default() }],
        };
        Handed {
            kind: Kind::Spot,
            event_id: "n-1".to_owned(),
            instance: INSTANCE.to_owned(),
            request_id: "r-1".to_owned(),
            attempts: vec![attempt],
            panics: Vec::new(),
        }
    }

    pub(crate) fn ended() -> Ended {
        Ended {
            node: "node-1".to_owned(),
            instance: INSTANCE.to_owned(),
            goes_on: true,
            is_reclaimed: false,
            looked: BEGIN + Duration::from_mins(1),
            ours: Vec::new(),
            hooks: vec![Some("call".to_owned())],
            workload: Workload {
                pods: vec!["web-1-0-0".to_owned()],
                grace: Duration::from_secs(5),
                budget: None,
                drains: true,
                told: vec![moved::Told { at: BEGIN, goes: Some(BEGIN + Duration::from_secs(30)) }],
            },
        }
    }

    pub(crate) fn seen(handed: Handed, ended: Ended) -> Seen {
        let evicted = request("create", "pods/eviction", "web-1-0-0", 201, 2_000..2_010);
        Seen { handed: vec![handed], nodes: vec![ended], requests: vec![evicted], ..Seen::default() }
    }

    pub(crate) fn told(seen: &Seen) -> Vec<String> {
        of(seen).violations.iter().map(ToString::to_string).collect()
    }

    /// What came of a notice whose only attempt failed, and which is in the failure queue.
    fn given_up(mut seen: Seen) -> Seen {
        seen.given_up = ["r-1".to_owned()].into();
        seen.handed[0].attempts[0].error = Some("AwsDenied".to_owned());
        seen
    }

    /// It is a violation; none where its own notice is in the failure queue, and is counted then; one where another is.
    fn is_excused_by_its_own_notice_only(seen: impl Fn() -> Seen, text: &str, excuse: &str) {
        assert_eq!(told(&seen()), [text]);
        let own = of(&given_up(seen()));
        assert_eq!((own.violations, own.excuses), (Vec::new(), Counts::from([(excuse.to_owned(), 1)])));
        let mut other = given_up(seen());
        other.given_up = ["r-2".to_owned()].into();
        assert_eq!(told(&other), [text]);
        let mut later = given_up(seen());
        let mut copy = Handed { request_id: "r-2".to_owned(), ..handed() };
        (copy.kind, copy.attempts[0].pods) = (seen().handed[0].kind, Vec::new());
        copy.attempts[0].to += Duration::from_secs(1);
        later.handed.push(copy);
        if !text.starts_with("no receipt") {
            assert_eq!(told(&later).len(), 1, "it came once more, and did not fail");
        }
    }

    #[test]
    fn what_went_well_breaks_nothing() {
        let verdict = of(&seen(handed(), ended()));
        assert_eq!((verdict.violations, verdict.excuses), (Vec::new(), Counts::new()));
    }

    #[test]
    fn a_delivery_has_a_receipt_or_a_record_in_the_failure_queue() {
        let lost = || {
            let mut lost = seen(handed(), ended());
            lost.handed[0].attempts[0].receipts = 0;
            lost
        };
        let text =
            "no receipt and no text in the failure queue: spot interruption n-1 of i-0123456789abcdef0, request r-1";
        is_excused_by_its_own_notice_only(lost, text, "no receipt, but a record in the failure queue");
    }

    #[test]
    fn a_hook_is_answered_unless_its_own_notice_was_given_up() {
        for (ended_by, word) in [(Some("expiry"), "expiry"), (None, "nobody yet")] {
            let notice = || Handed { kind: Kind::Terminate, ..handed() };
            let hooks = vec![ended_by.map(str::to_owned)];
            let text = format!("hook unanswered: that of {INSTANCE}, node node-1, ended by {word}; notices: ");
            let unanswered = || seen(notice(), Ended { hooks: hooks.clone(), ..ended() });
            let text = format!("{text}terminate lifecycle action n-1");
            is_excused_by_its_own_notice_only(unanswered, &text, "a hook of a notice in the failure queue");
            let of_spot = given_up(seen(handed(), Ended { hooks, ..ended() }));
            assert_eq!(told(&of_spot).len(), 1, "the hook's is another notice");
        }
    }

    #[test]
    fn a_hook_may_wait_when_ec2_takes_a_spot_instance_but_not_time_out_before() {
        for (hook, violations) in [(None, 0), (Some("expiry".to_owned()), 1)] {
            let reclaimed = Ended { hooks: vec![hook], is_reclaimed: true, ..ended() };
            assert_eq!(told(&seen(handed(), reclaimed)).len(), violations);
        }
    }

    #[test]
    fn a_panic_is_never_allowed() {
        let line = "thread 'main' panicked at src/main.rs:1:1";
        let panicked = || seen(Handed { panics: vec![line.to_owned()], ..handed() }, ended());
        let text = format!("panic: spot interruption n-1 of {INSTANCE}: {line}");
        assert_eq!([told(&panicked()), told(&given_up(panicked()))], [vec![text.clone()], vec![text]]);
    }

    #[test]
    fn nothing_of_ours_is_left_on_a_node_that_is_to_be_in_use() {
        let left = || seen(handed(), Ended { ours: vec!["the claim of n-1".to_owned()], ..ended() });
        let text = format!(
            "left on a node that is to be in use: the claim of n-1 on node-1 of {INSTANCE}; notices: spot interruption n-1"
        );
        is_excused_by_its_own_notice_only(left, &text, "left by a notice in the failure queue");
        let mut afterwards = given_up(left());
        afterwards.handed[0].attempts[0].to = ended().looked + Duration::from_secs(1);
        assert_eq!(told(&afterwards), [text], "it was given up after the node was looked at");
        let others = seen(handed(), Ended { ours: vec!["the claim of n-2".to_owned()], ..ended() });
        assert_eq!(told(&given_up(others)).len(), 1, "the claim is another notice's");
        let gone = Ended { ours: vec!["a cordon".to_owned()], goes_on: false, ..ended() };
        assert_eq!(told(&seen(handed(), gone)), Vec::<String>::new());
    }

    #[test]
    fn what_never_comes_to_its_end_is_told() {
        let restless = Seen { restless: vec![INSTANCE.to_owned()], ..Seen::default() };
        assert_eq!(told(&restless)[0], format!("never quiet: {INSTANCE}"));
    }
}

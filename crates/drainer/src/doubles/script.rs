//! Script: expected calls in order, with their answers. Missing and unexpected calls fail the test at its end.

use std::sync::{Arc, Mutex};

/// Expected call and its answer.
#[derive(Debug)]
#[must_use = "a script takes it"]
pub struct Expected {
    call: String,
    with: Vec<String>,
    without: Vec<String>,
    answer: Answer,
    at_any_time: bool,
    may_be_missing: bool,
    /// Number of calls so far, if the call may repeat.
    repeated: Option<u32>,
}

/// Answer to a call.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Status and body.
    Says(u16, String),
    /// Lines, after which the answer stays open.
    Streams(Vec<String>),
    /// The connection breaks.
    Lost,
    /// No answer.
    Hangs,
}

/// Expects a call by its name: `PATCH /api/v1/nodes/n-1`, `CompleteLifecycleAction`. By default the call hangs.
pub fn call(call: impl Into<String>) -> Expected {
    let (with, without) = (Vec::new(), Vec::new());
    let (at_any_time, may_be_missing, repeated) = (false, false, None);
    Expected { call: call.into(), with, without, answer: Answer::Hangs, at_any_time, may_be_missing, repeated }
}

impl Expected {
    /// Requires a text in the query or body.
    pub fn with(mut self, text: impl Into<String>) -> Self {
        self.with.push(text.into());
        self
    }

    /// Forbids a text in the query and body.
    pub fn without(mut self, text: impl Into<String>) -> Self {
        self.without.push(text.into());
        self
    }

    /// Answers with a status and a body.
    #[expect(clippy::needless_pass_by_value, reason = "a test gives the text or the JSON that it has just made")]
    pub fn says(self, status: u16, body: impl ToString) -> Self {
        Self { answer: Answer::Says(status, body.to_string()), ..self }
    }

    /// Answers with lines and stays open.
    pub fn streams(self, lines: &[serde_json::Value]) -> Self {
        Self { answer: Answer::Streams(lines.iter().map(|line| format!("{line}\n")).collect()), ..self }
    }

    /// Breaks the connection before the answer.
    pub fn lost(self) -> Self {
        Self { answer: Answer::Lost, ..self }
    }

    /// Allows the call at any time, for concurrent calls.
    pub fn at_any_time(self) -> Self {
        Self { at_any_time: true, ..self }
    }

    /// Allows the call at any time or never.
    pub fn perhaps(self) -> Self {
        Self { at_any_time: true, may_be_missing: true, ..self }
    }

    /// Expects the call once or more, until the next call of the script.
    pub fn repeated(self) -> Self {
        Self { repeated: Some(0), ..self }
    }

    /// Returns the difference between a call and the expected one.
    fn objection(&self, call: &str, text: &str) -> Option<String> {
        if self.call != call {
            return Some(format!("{call} came where {} was expected: {text}", self.call));
        }
        let lacks = self.with.iter().find(|with| !text.contains(*with));
        let has = self.without.iter().find(|without| text.contains(*without));
        lacks
            .map(|lacks| format!("{call} lacks {lacks}: {text}"))
            .or_else(|| has.map(|has| format!("{call} has {has}: {text}")))
    }
}

/// Script for the API server or for AWS.
#[derive(Debug, Clone)]
pub struct Script {
    side: &'static str,
    left: Arc<Mutex<Vec<Expected>>>,
    problems: Arc<Mutex<Vec<String>>>,
}

impl Script {
    pub fn new(side: &'static str, calls: impl IntoIterator<Item = Expected>) -> Self {
        Self { side, left: Arc::new(Mutex::new(calls.into_iter().collect())), problems: Arc::default() }
    }

    /// Returns the answer to a call; `None` for an unexpected one.
    pub fn answer(&self, call: &str, text: &str) -> Option<Answer> {
        let mut left = self.left.lock().expect("the lock is not poisoned");
        let mut is_due = true;
        for at in 0..left.len() {
            let expected = &mut left[at];
            if (is_due || expected.at_any_time) && expected.objection(call, text).is_none() {
                let answer = expected.answer.clone();
                match &mut expected.repeated {
                    Some(times) => *times += 1,
                    None => drop(left.remove(at)),
                }
                return Some(answer);
            }
            // Optional calls before the next call in order may be skipped.
            is_due &= expected.at_any_time || expected.repeated.is_some_and(|times| times > 0);
        }
        let due = left.iter().find(|expected| !expected.at_any_time);
        let problem = due.and_then(|due| due.objection(call, text));
        let nothing = || format!("{call} came when nothing more was expected: {text}");
        self.problems.lock().expect("the lock is not poisoned").push(problem.unwrap_or_else(nothing));
        None
    }

    /// Returns the missing and unexpected calls.
    pub fn problems(&self) -> Vec<String> {
        let never = |expected: &Expected| format!("{} never came", expected.call);
        let mut problems = self.problems.lock().expect("the lock is not poisoned").clone();
        let is_missing =
            |expected: &&Expected| !expected.may_be_missing && expected.repeated.is_none_or(|times| times == 0);
        problems.extend(self.left.lock().expect("the lock is not poisoned").iter().filter(is_missing).map(never));
        problems.into_iter().map(|problem| format!("{}: {problem}", self.side)).collect()
    }
}

//! A script: the calls that are to come, in their order, and the answer to each. What does not come, or was not expected, is
//! kept for the end of the test.

use std::sync::{Arc, Mutex};

/// A call that is to come, and its answer.
#[derive(Debug)]
#[must_use = "a script takes it"]
pub struct Expected {
    call: String,
    with: Vec<String>,
    without: Vec<String>,
    answer: Answer,
    at_any_time: bool,
    may_be_missing: bool,
    /// How often it came, if it may come again and again.
    repeated: Option<u32>,
}

/// How a call is answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// With a status and a body.
    Says(u16, String),
    /// With lines, and no end.
    Streams(Vec<String>),
    /// The connection breaks.
    Lost,
    /// Not at all.
    Hangs,
}

/// A call by its name: `PATCH /api/v1/nodes/n-1`, `CompleteLifecycleAction`. Until it says otherwise it is never answered.
pub fn call(call: impl Into<String>) -> Expected {
    let (with, without) = (Vec::new(), Vec::new());
    let (at_any_time, may_be_missing, repeated) = (false, false, None);
    Expected { call: call.into(), with, without, answer: Answer::Hangs, at_any_time, may_be_missing, repeated }
}

impl Expected {
    /// What its query or its body has to hold.
    pub fn with(mut self, text: impl Into<String>) -> Self {
        self.with.push(text.into());
        self
    }

    /// What neither its query nor its body may hold.
    pub fn without(mut self, text: impl Into<String>) -> Self {
        self.without.push(text.into());
        self
    }

    /// Answers with a status and a body.
    #[expect(clippy::needless_pass_by_value, reason = "a test gives the text or the JSON that it has just made")]
    pub fn says(self, status: u16, body: impl ToString) -> Self {
        Self { answer: Answer::Says(status, body.to_string()), ..self }
    }

    /// Answers with these lines, and stays open.
    pub fn streams(self, lines: &[serde_json::Value]) -> Self {
        Self { answer: Answer::Streams(lines.iter().map(|line| format!("{line}\n")).collect()), ..self }
    }

    /// The connection breaks before the answer.
    pub fn lost(self) -> Self {
        Self { answer: Answer::Lost, ..self }
    }

    /// It may come when another one is due: what runs side by side has no order.
    pub fn at_any_time(self) -> Self {
        Self { at_any_time: true, ..self }
    }

    /// It may come at any time, or never: what ends a task may be quicker than its next call.
    pub fn perhaps(self) -> Self {
        Self { at_any_time: true, may_be_missing: true, ..self }
    }

    /// It comes once or more often, until the next in the order comes.
    pub fn repeated(self) -> Self {
        Self { repeated: Some(0), ..self }
    }

    /// What is wrong with what came in its place.
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

/// What is played to one side of the function: the API server, or AWS.
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

    /// The answer to a call; `None`: it is none that was expected.
    pub fn answer(&self, call: &str, text: &str) -> Option<Answer> {
        let mut left = self.left.lock().expect("nobody panics who has it");
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
            // The next in the order is due behind what need not come now.
            is_due &= expected.at_any_time || expected.repeated.is_some_and(|times| times > 0);
        }
        let due = left.iter().find(|expected| !expected.at_any_time);
        let problem = due.and_then(|due| due.objection(call, text));
        let nothing = || format!("{call} came when nothing more was expected: {text}");
        self.problems.lock().expect("nobody panics who has it").push(problem.unwrap_or_else(nothing));
        None
    }

    /// What went otherwise than expected.
    pub fn problems(&self) -> Vec<String> {
        let never = |expected: &Expected| format!("{} never came", expected.call);
        let mut problems = self.problems.lock().expect("nobody panics who has it").clone();
        let is_missing =
            |expected: &&Expected| !expected.may_be_missing && expected.repeated.is_none_or(|times| times == 0);
        problems.extend(self.left.lock().expect("nobody panics who has it").iter().filter(is_missing).map(never));
        problems.into_iter().map(|problem| format!("{}: {problem}", self.side)).collect()
    }
}

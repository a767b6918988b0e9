//! What begins later: a schedule brings the notice back when its time has come.

use jiff::Timestamp;

use crate::attempt::Attempt;
use crate::ending::{self, Outcome};
use crate::handler::Spillway;
use crate::interruption::Deadline;
use crate::interruption::continued::{DETAIL_TYPE, History};
use crate::later::schedule::{Event, Name};
use crate::receipt::{Receipt, StepName};

impl Spillway {
    /// Has the notice come again when it is time to begin. An update of the notice moves that time.
    pub(crate) async fn schedule(&self, attempt: &Attempt<'_>, begins: Timestamp, receipt: &mut Receipt) -> Outcome {
        let Attempt { interruption, history, invocation, .. } = attempt;
        // It begins anew then: what was tried before its time is no part of the drain.
        let history = History { earlier: Vec::new(), ..(*history).clone() };
        let event = Event::new(DETAIL_TYPE, &history);
        let now = (invocation.clock.now(), invocation.hands_on_until());
        self.scheduler.put(&Name::of(interruption), begins, &event, now).await?;
        receipt.step(StepName::HandedOn, invocation.clock.now());
        let starts = match interruption.deadline {
            Deadline::Hard(at) => at,
            Deadline::HeldByHook | Deadline::Open => begins,
        };
        Ok(ending::scheduled(&interruption.instance, starts, begins))
    }
}

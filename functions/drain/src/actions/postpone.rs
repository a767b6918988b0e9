//! What begins later: a schedule brings the notice back when its time has come.

use jiff::Timestamp;
use spillway_eks::ClusterName;

use super::uncordon::{Patience, over};
use crate::aws::instance::Instance;
use crate::context::target::Attempt;
use crate::continuation::schedule::{Name, ScheduledEvent};
use crate::handler::Spillway;
use crate::node::uncordon::UncordonResult;
use crate::notice::continued::{DETAIL_TYPE, History};
use crate::receipt::ending::{self, Outcome};
use crate::receipt::{Receipt, StepName};

impl Spillway {
    /// Has the notice come again when it is time to begin. An update of the notice moves that time; if
    /// the drain had begun by the time that was named before, the node is given back until then.
    pub(crate) async fn schedule(
        &self,
        attempt: &Attempt<'_>,
        begins: Timestamp,
        instance: &Instance,
        cluster: &ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let Attempt { notice, history, invocation, .. } = attempt;
        // It begins anew then: what was tried before its time is no part of the drain.
        let history = History { earlier: Vec::new(), ..(*history).clone() };
        let event = ScheduledEvent::new(DETAIL_TYPE, &history);
        // Before: a drain that had begun may take the schedule for its own, until it sees that the node is given back.
        let undone = match over(notice) {
            Some(over) => self.give_back(cluster, instance, &over, invocation.drains_until(), Patience::Look).await,
            None => Ok(UncordonResult::NoNode),
        };
        let now = (invocation.clock.now(), invocation.hands_on_until());
        self.scheduler.put(&Name::of(notice), begins, &event, now).await?;
        receipt.step(StepName::HandedOn, invocation.clock.now());

        let undone = undone?;
        receipt.node = undone.node().map(str::to_owned);
        Ok(ending::scheduled(notice, begins, &undone))
    }
}

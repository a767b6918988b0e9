//! Undo checks: at a time it is looked whether a node that was taken out for a notice may be given back.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::uncordon::Patience;
use crate::context::target::Attempt;
use crate::continuation::schedule::{Name, ScheduledEvent};
use crate::decision::{self, Reason};
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::invocation::Invocation;
use crate::node::Claim;
use crate::node::uncordon::{UncordonCause, UncordonResult};
use crate::notice::undo_check::{DETAIL_TYPE, UndoCheck};
use crate::notice::{Kind, Notice};
use crate::receipt::ending::{self, Outcome, ignored};
use crate::receipt::{Receipt, StepName};

/// For how long a drain is kept from beginning by what is to follow it.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is over, if the check finds it so.
fn over(notice: &Notice) -> Option<UncordonCause> {
    match (notice.kind, &notice.maintenance) {
        (Kind::Rebalance, _) => Some(UncordonCause::Rebalance),
        (Kind::Maintenance, Some(maintenance)) => Some(UncordonCause::Reboot(maintenance.id.clone())),
        (Kind::ReplaceRootVolume, _) => Some(UncordonCause::RootVolume),
        _ => None,
    }
}

impl Spillway {
    /// Arranges what follows a claim: that it is looked later whether it may be undone; and that what was
    /// scheduled for the same maintenance does not begin once more. Comes before the drain, which a dying
    /// invocation may not survive; a failure here is for after the drain.
    pub(super) async fn arrange(&self, attempt: &Attempt<'_>, claim: &Claim) -> Result<(), Failure> {
        let (notice, now) = (attempt.notice, attempt.invocation.clock.now());
        let end = (Instant::now() + PATIENCE).min(attempt.invocation.hands_on_until());
        let arranged = async {
            if notice.kind == Kind::Maintenance {
                self.scheduler.delete(&Name::of(notice), end).await?;
            }
            match decision::first_check(notice, now, &self.settings) {
                Some(at) => {
                    let (event, instance) = (attempt.history.notice.clone(), notice.instance.to_string());
                    let check = UndoCheck { notice: event, instance, number: 0 };
                    self.schedule_check(notice, &check, at, (now, end)).await
                }
                None => Ok(()),
            }
        };
        let tell = |error: &Failure| {
            let node = &claim.node;
            tracing::warn!(node.name = node, error = %error, "cannot arrange that node {node} is given back; going on");
        };
        arranged.await.inspect_err(tell)
    }

    /// Looks whether the node may be given back. If it has not come back yet, it is looked again.
    pub(crate) async fn check(
        &self,
        notice: &Notice,
        check: &UndoCheck,
        invocation: &Invocation,
        receipt: &mut Receipt,
    ) -> Outcome {
        receipt.step(StepName::Begun, invocation.clock.started());
        let Some(over) = over(notice) else {
            return Ok(ignored(&Reason::NothingToUndo(notice.kind.as_str())));
        };
        receipt.decision = Some("undo");
        if self.settings.dry_run {
            return Ok(ending::would_have("looked whether the node may be given back"));
        }
        let end = invocation.drains_until();
        let (instance, cluster) = match self.whose(notice, invocation, end, receipt).await? {
            Ok(whose) => whose,
            Err(reason) => return Ok(ignored(&reason)),
        };
        let (node, why) = match self.give_back(&cluster, &instance, &over, end, Patience::Look).await? {
            UncordonResult::NotReadyYet { node, why } => (node, why),
            undone => {
                receipt.node = undone.node().map(str::to_owned);
                return Ok(ending::undone(undone, &over, cluster, &instance));
            }
        };
        receipt.node = Some(node.clone());
        let now = invocation.clock.now();
        let Some(at) = decision::next_check(check, now) else {
            return Err(Failure::NotBack { node, why: why.to_string() });
        };
        self.schedule_check(notice, &check.next(), at, (now, invocation.hands_on_until())).await?;
        receipt.step(StepName::HandedOn, invocation.clock.now());
        Ok(ending::looked_for_again(&node, why, at))
    }

    async fn schedule_check(
        &self,
        notice: &Notice,
        check: &UndoCheck,
        at: Timestamp,
        now: (Timestamp, Instant),
    ) -> Result<(), Failure> {
        let name = Name::of_check(notice, check.number);
        self.scheduler.put(&name, at, &ScheduledEvent::new(DETAIL_TYPE, check), now).await
    }
}

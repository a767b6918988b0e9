//! What happens to a notice, from the event to the receipt, in order.

use lambda_runtime::LambdaEvent;
use serde_json::Value;
use spillway_eks::ClusterName;
use tokio::time::Instant;

use crate::announce::announce;
use crate::attempt::Attempt;
use crate::aws;
use crate::cluster::Access;
use crate::decision::{self, Act, Reason};
use crate::ending::{self, Outcome, ignored};
use crate::failure::Failure;
use crate::instance::{self, Instance, Owner, owner};
use crate::interruption::continued::History;
use crate::interruption::{self, Interruption, Notice};
use crate::invocation::Invocation;
use crate::later::schedule::Scheduler;
use crate::later::{self, Limits};
use crate::lifecycle::Action;
use crate::managed;
use crate::receipt::{Ending, Receipt, StepName};
use crate::settings::Settings;

/// Everything a notice needs, made once when the function starts.
#[derive(Debug)]
pub(crate) struct Spillway {
    pub(crate) settings: Settings,
    pub(crate) ec2: aws_sdk_ec2::Client,
    pub(crate) autoscaling: aws_sdk_autoscaling::Client,
    pub(crate) eventbridge: aws_sdk_eventbridge::Client,
    pub(crate) scheduler: Scheduler,
    pub(crate) access: Access,
}

impl Spillway {
    /// Handles one event. The answer is the receipt; an error keeps the event.
    pub(crate) async fn handle(&self, event: LambdaEvent<Value>) -> Result<Receipt, Failure> {
        let invocation = Invocation::begin(&event.context);
        let request_id = &invocation.request_id;
        let event_id = event.payload.get("id").and_then(Value::as_str).map(str::to_owned);

        let (mut receipt, outcome) = match interruption::read(event.payload, &invocation.home) {
            Ok(Notice::Interruption { interruption, history }) => {
                let mut receipt = Receipt::begin(request_id, &interruption, &history.earlier);
                let outcome = self.interruption(&interruption, &history, &invocation, &mut receipt).await;
                (receipt, outcome)
            }
            Ok(Notice::Several(several)) => {
                let mut receipt = Receipt::of_several(request_id, &several);
                let outcome = self.several(&several, &invocation, &mut receipt).await;
                (receipt, outcome)
            }
            Ok(Notice::UndoCheck { interruption, check }) => {
                let mut receipt = Receipt::begin(request_id, &interruption, &[]);
                let outcome = self.check(&interruption, &check, &invocation, &mut receipt).await;
                (receipt, outcome)
            }
            Ok(Notice::Unhandled { event_id, why }) => {
                (Receipt::without_interruption(request_id, Some(event_id)), Ok(ignored(&Reason::NotHandled(why))))
            }
            Err(error) => (Receipt::without_interruption(request_id, event_id), Err(error.into())),
        };

        receipt.dry_run = self.settings.dry_run;
        match &outcome {
            Ok((ending, reason)) => receipt.end(*ending, reason.clone()),
            Err(failure) => receipt.fail(failure),
        }
        announce(&receipt, &self.settings.metrics_namespace, invocation.clock.now());
        outcome.map(|_| receipt)
    }

    /// Whether to act at all, until when, and what becomes of what is left when the invocation is over.
    async fn interruption(
        &self,
        interruption: &Interruption,
        history: &History,
        invocation: &Invocation,
        receipt: &mut Receipt,
    ) -> Outcome {
        receipt.step(StepName::Begun, invocation.clock.started());
        if let Some(reason) = decision::by_setting(interruption, &self.settings) {
            return Ok(ignored(&reason));
        }
        let action = match &interruption.hook {
            // A dry run leaves the hook alone: it has no action to send anything to.
            Some(hook) if !self.settings.dry_run => {
                Some(Action::look_up(&self.autoscaling, hook, &interruption.instance).await)
            }
            _ => None,
        };
        let limits = Limits::of(interruption, action.as_ref().map(|action| action.waits), &self.settings);

        let attempt = Attempt { interruption, history, invocation, action, limits };
        let outcome = match self.act(&attempt, receipt).await {
            Ok((Ending::Ignored, reason)) => Ok((Ending::Ignored, receipt.with_hook_left(reason))),
            outcome if self.settings.dry_run => outcome,
            Err(failure) if failure.shuts_us_out() => self.shut_out(&attempt, failure, receipt).await,
            Err(failure) if limits.leave_time_after(invocation, &failure, history) => {
                self.hand_on(&attempt, &failure, receipt).await
            }
            outcome => outcome,
        };
        if let Some(action) = &attempt.action {
            receipt.heartbeats(&action.held_at(), (invocation.clock.now(), Instant::now()));
        }
        outcome
    }

    /// Whose node is it, in which cluster, and what does that mean?
    async fn act(&self, attempt: &Attempt<'_>, receipt: &mut Receipt) -> Outcome {
        let Attempt { interruption, invocation, .. } = attempt;
        match self.whose(interruption, invocation, attempt.window(&self.settings).end, receipt).await? {
            Ok((instance, cluster)) => self.decide(attempt, &instance, owner(&instance.tags), cluster, receipt).await,
            // Whoever acts on it completes its hooks.
            Err(reason @ (Reason::NotOurCluster(_) | Reason::NoManagedTag { .. })) => Ok(ignored(&reason)),
            Err(reason) => self.stranded(attempt, &reason, receipt).await,
        }
    }

    /// The interruption's instance and its cluster, if it is in one whose nodes we act on. Tried until `end`.
    pub(crate) async fn whose(
        &self,
        interruption: &Interruption,
        invocation: &Invocation,
        end: Instant,
        receipt: &mut Receipt,
    ) -> Result<Result<(Instance, ClusterName), Reason>, Failure> {
        let id = &interruption.instance;
        let described = aws::until(instance::DESCRIBE, end, || instance::describe(&self.ec2, id)).await?;
        let Some(instance) = described else { return Ok(Err(Reason::NoInstance(id.to_string()))) };
        receipt.step(StepName::Described, invocation.clock.now());
        let cluster = match decision::cluster_of(&instance, &self.settings)? {
            Ok(cluster) => cluster,
            Err(reason) => return Ok(Err(reason)),
        };
        receipt.cluster = Some(cluster.to_string());
        if let Some(tag) = &self.settings.managed_tag
            && !managed::is_managed(&self.autoscaling, &instance, tag, end).await?
        {
            return Ok(Err(Reason::NoManagedTag { instance: id.to_string(), tag: tag.to_string() }));
        }
        Ok(Ok((instance, cluster)))
    }

    /// Does what the table says for such a notice and that owner's node.
    pub(crate) async fn decide(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        owner: Owner,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let Attempt { interruption, invocation, .. } = attempt;
        let act = decision::decide(interruption.kind, owner, &self.settings);
        (receipt.owner, receipt.decision) = (Some(owner.as_str()), Some(act.as_str()));
        if self.settings.dry_run {
            return self.dry_run(act, attempt, instance, owner, cluster, receipt).await;
        }
        let begins = decision::begins(interruption, &self.settings);
        match act {
            Act::Drain | Act::Cordon | Act::NodeClaim if invocation.clock.now() < begins => {
                receipt.decision = Some("later");
                self.schedule(attempt, begins, instance, &cluster, receipt).await
            }
            Act::Drain => self.drain(attempt, instance, owner, cluster, receipt).await,
            Act::Cordon => self.cordon(attempt, instance, owner, cluster, receipt).await,
            Act::Ignore(reason) => Ok(ignored(&reason)),
            Act::AwaitReady => self.await_ready(attempt, instance, cluster, receipt).await,
            Act::NodeClaim => self.node_claim(attempt, instance, cluster, receipt).await,
            Act::Undo => self.undo(attempt, instance, cluster, receipt).await,
            Act::OutOfService => self.out_of_service(attempt, instance, owner, cluster, receipt).await,
        }
    }

    /// Leaves the rest to a later invocation.
    async fn hand_on(&self, attempt: &Attempt<'_>, unfinished: &Failure, receipt: &mut Receipt) -> Outcome {
        let Attempt { history, invocation, action, .. } = attempt;
        let history = history.with(receipt.in_short(invocation.clock.started(), invocation.clock.now()));
        let end = invocation.hands_on_until();
        let (handed_on, ()) =
            tokio::join!(later::hand_on(&self.eventbridge, std::slice::from_ref(&history), end), async {
                if let Some(action) = action {
                    action.hold_for_the_next(end).await;
                }
            });
        handed_on?;
        receipt.step(StepName::HandedOn, invocation.clock.now());
        receipt.hook_is_held();
        Ok(ending::continued(unfinished))
    }
}

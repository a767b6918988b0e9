//! What happens to a notice, from the event to the receipt, in order.

use serde_json::Value;
use spillway_eks::ClusterName;
use tokio::time::Instant;

use crate::aws::instance::{self, Instance, ManagedBy, owner};
use crate::aws::lifecycle::LifecycleAction;
use crate::aws::managed_tag;
use crate::context::cluster::Access;
use crate::context::target::Attempt;
use crate::continuation::Limits;
use crate::continuation::schedule::Scheduler;
use crate::decision::{self, Decision, Reason, WhoseCluster};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::notice::continued::History;
use crate::notice::{self, Incoming, Notice};
use crate::publish::announce;
use crate::receipt::ending::{Outcome, ignored};
use crate::receipt::{Ending, Receipt, StepName};
use crate::requests::Sent;
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
    pub(crate) sent: Sent,
}

impl Spillway {
    /// Handles one notice, or what may be one. An error keeps the event.
    pub(crate) async fn handle(&self, event: Value, invocation: &Invocation) -> Result<Receipt, Failure> {
        let sent_before = self.sent.so_far();
        let event_id = event.get("id").and_then(Value::as_str).map(str::to_owned);

        let (mut receipt, outcome) = match notice::read(event, &invocation.home) {
            Ok(Incoming::Notice { notice, history }) => {
                let mut receipt = Receipt::begin(invocation, &notice, &history.earlier);
                let outcome = self.act_on(&notice, &history, invocation, &mut receipt).await;
                (receipt, outcome)
            }
            Ok(Incoming::Several(several)) => {
                let mut receipt = Receipt::of_several(invocation, &several);
                let outcome = self.several(&several, invocation, &mut receipt).await;
                (receipt, outcome)
            }
            Ok(Incoming::UndoCheck { notice, check }) => {
                let mut receipt = Receipt::begin(invocation, &notice, &[]);
                let outcome = self.check(&notice, &check, invocation, &mut receipt).await;
                (receipt, outcome)
            }
            Ok(Incoming::Unhandled { event_id, why }) => {
                (Receipt::without_notice(invocation, Some(event_id)), Ok(ignored(&Reason::NotHandled(why))))
            }
            Err(error) => (Receipt::without_notice(invocation, event_id), Err(error.into())),
        };

        receipt.dry_run = self.settings.dry_run;
        receipt.requests = Some(self.sent.so_far().since(sent_before));
        match &outcome {
            Ok((ending, reason)) => receipt.end(*ending, reason.clone()),
            Err(failure) => receipt.fail(failure),
        }
        announce(&mut receipt, &self.settings, &self.eventbridge, invocation).await;
        outcome.map(|_| receipt)
    }

    /// Whether to act at all, until when, and what becomes of what is left when the invocation is over.
    async fn act_on(
        &self,
        notice: &Notice,
        history: &History,
        invocation: &Invocation,
        receipt: &mut Receipt,
    ) -> Outcome {
        receipt.step(StepName::Begun, invocation.clock.started());
        if let Some(reason) = decision::by_setting(notice, &self.settings) {
            return Ok(ignored(&reason));
        }
        let action = match decision::our_hook(notice, &self.settings) {
            // A dry run leaves the hook alone: it has no action to send anything to.
            Some(hook) if !self.settings.dry_run => {
                Some(LifecycleAction::look_up(&self.autoscaling, hook, &notice.instance).await)
            }
            _ => None,
        };
        let limits = Limits::of(notice, action.as_ref().map(|action| action.waits), &self.settings);

        let attempt = Attempt { notice, history, invocation, action, limits };
        let outcome = match self.decision_for(&attempt, receipt).await {
            Ok((Ending::Ignored, reason)) => Ok((Ending::Ignored, receipt.with_hook_left(reason))),
            outcome if self.settings.dry_run => outcome,
            Err(failure) if failure.shuts_us_out() => self.shut_out(&attempt, failure, receipt).await,
            Err(failure) => self.unfinished(&attempt, failure, receipt).await,
            outcome => outcome,
        };
        if let Some(action) = &attempt.action {
            receipt.heartbeats(&action.held_at(), (invocation.clock.now(), Instant::now()));
        }
        outcome
    }

    /// Whose node is it, in which cluster, and what does that mean?
    async fn decision_for(&self, attempt: &Attempt<'_>, receipt: &mut Receipt) -> Outcome {
        let Attempt { notice, invocation, .. } = attempt;
        let whose = self.whose(notice, invocation, attempt.window(&self.settings).end, receipt);
        match attempt.keep_hook_during(&self.settings, whose).await? {
            Ok((instance, cluster)) => self.decide(attempt, &instance, owner(&instance.tags), cluster, receipt).await,
            // Whoever acts on it completes its hooks.
            Err(reason @ (Reason::NotOurCluster(_) | Reason::NoManagedTag { .. })) => Ok(ignored(&reason)),
            Err(reason) => self.stranded(attempt, &reason, receipt).await,
        }
    }

    /// The notice's instance and its cluster, if it is in one whose nodes we act on. Tried until `end`.
    pub(crate) async fn whose(
        &self,
        notice: &Notice,
        invocation: &Invocation,
        end: Instant,
        receipt: &mut Receipt,
    ) -> Result<Result<(Instance, ClusterName), Reason>, Failure> {
        let id = &notice.instance;
        let is_behind = |described: Option<&_>| decision::is_behind(notice.kind, described, &self.settings);
        let described = instance::describe(&self.ec2, id, end, is_behind).await?;
        let Some(instance) = described else { return Ok(Err(Reason::NoInstance(id.to_string()))) };
        receipt.step(StepName::Described, invocation.clock.now());
        receipt.describe(&instance);
        let cluster = match decision::cluster_of(&instance, &self.settings) {
            WhoseCluster::Ours(cluster) => cluster,
            WhoseCluster::NotOurs(reason) => return Ok(Err(reason)),
            WhoseCluster::Ambiguous(refusal) => return Err(refusal.into()),
        };
        receipt.cluster = Some(cluster.to_string());
        if let Some(tag) = &self.settings.managed_tag
            && !managed_tag::is_managed(&self.autoscaling, &instance, tag, end).await?
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
        owner: ManagedBy,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let Attempt { notice, invocation, .. } = attempt;
        let act = decision::decide(notice, owner, &self.settings);
        (receipt.owner, receipt.decision) = (Some(owner.as_str()), Some(act.as_str()));
        if self.settings.dry_run {
            return self.dry_run(act, attempt, instance, owner, cluster, receipt).await;
        }
        let begins = decision::begins(notice, &self.settings);
        match act {
            Decision::Drain | Decision::Cordon | Decision::NodeClaim if invocation.clock.now() < begins => {
                receipt.decision = Some("later");
                self.schedule(attempt, begins, instance, &cluster, receipt).await
            }
            Decision::Drain => self.drain(attempt, instance, owner, cluster, receipt).await,
            Decision::Cordon => self.cordon(attempt, instance, owner, cluster, receipt).await,
            Decision::Ignore(reason) => Ok(ignored(&reason)),
            Decision::AwaitReady => self.await_ready(attempt, instance, cluster, receipt).await,
            Decision::NodeClaim => self.node_claim(attempt, instance, cluster, receipt).await,
            Decision::Undo => self.undo(attempt, instance, cluster, receipt).await,
            Decision::OutOfService => self.out_of_service(attempt, instance, owner, cluster, receipt).await,
        }
    }
}

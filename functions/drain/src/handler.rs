//! What happens to a notice, from the event to the receipt, in order.

use std::pin::{Pin, pin};

use futures_util::future::{Either, select};
use jiff::{SignedDuration, Timestamp};
use lambda_runtime::LambdaEvent;
use serde_json::Value;
use spillway_eks::ClusterName;
use tokio::time::Instant;

use crate::announce::announce;
use crate::aws;
use crate::cluster::Access;
use crate::decision::{self, Decision, Reason};
use crate::drain::beside::{self, Claimed};
use crate::drain::deadline::Window;
use crate::drain::{self, End};
use crate::ending::{self, Outcome, ignored};
use crate::failure::Failure;
use crate::instance::{self, Instance};
use crate::interruption::continued::History;
use crate::interruption::{self, Deadline, Interruption, Notice};
use crate::invocation::Invocation;
use crate::kubernetes::{self, ApiError};
use crate::later::{self, Limits};
use crate::lifecycle::Action;
use crate::node::{Claim, Claimant, How, Mark};
use crate::receipt::{Receipt, StepName};
use crate::settings::{HeldPods, LifecycleResult, Settings};

/// A notice that comes late is still worked on this long: clocks differ, and evictions that
/// are asked for at once cost nothing.
const LEAST_WINDOW: SignedDuration = SignedDuration::from_secs(10);
/// The same when a hook waits: its answer must still find it waiting.
const LEAST_WINDOW_OF_A_HOOK: SignedDuration = SignedDuration::from_secs(2);

/// Everything a notice needs, made once when the function starts.
#[derive(Debug)]
pub(crate) struct Spillway {
    pub(crate) settings: Settings,
    pub(crate) ec2: aws_sdk_ec2::Client,
    pub(crate) autoscaling: aws_sdk_autoscaling::Client,
    pub(crate) eventbridge: aws_sdk_eventbridge::Client,
    pub(crate) access: Access,
}

/// One interruption in one invocation.
struct Attempt<'a> {
    interruption: &'a Interruption,
    history: &'a History,
    invocation: &'a Invocation,
    /// The lifecycle action that waits for us, if there is one.
    action: Option<Action<'a>>,
    limits: Limits,
}

impl Spillway {
    /// Handles one event. The answer is the receipt; an error keeps the event.
    pub(crate) async fn handle(&self, event: LambdaEvent<Value>) -> Result<Receipt, Failure> {
        let invocation = Invocation::begin(&event.context);
        let request_id = &invocation.request_id;
        let event_id = event.payload.get("id").and_then(Value::as_str).map(str::to_owned);

        let (mut receipt, outcome) = match interruption::read(event.payload) {
            Ok(Notice::Interruption { interruption, history }) => {
                let mut receipt = Receipt::begin(request_id, &interruption, &history.earlier);
                let outcome = self.interruption(&interruption, &history, &invocation, &mut receipt).await;
                (receipt, outcome)
            }
            Ok(Notice::Unhandled { event_id, why }) => {
                (Receipt::without_interruption(request_id, Some(event_id)), Ok(ignored(&Reason::NotHandled(why))))
            }
            Err(error) => (Receipt::without_interruption(request_id, event_id), Err(error.into())),
        };

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
            Some(hook) => Some(Action::look_up(&self.autoscaling, hook, &interruption.instance).await),
            None => None,
        };
        let limits = Limits::of(interruption, action.as_ref().map(|action| action.waits), &self.settings);

        let attempt = Attempt { interruption, history, invocation, action, limits };
        match self.drain(&attempt, receipt).await {
            Err(failure) if limits.leave_time_after(invocation, &failure, history) => {
                self.hand_on(&attempt, &failure, receipt).await
            }
            outcome => outcome,
        }
    }

    /// The way of an interruption: whose node is it, claim it, empty it, let the instance go.
    async fn drain(&self, attempt: &Attempt<'_>, receipt: &mut Receipt) -> Outcome {
        let clock = attempt.invocation.clock;
        let window = attempt.window(&self.settings);
        let id = &attempt.interruption.instance;
        let described = aws::until(instance::DESCRIBE, window.end, || instance::describe(&self.ec2, id)).await?;
        let Some(instance) = described else { return Ok(ignored(&Reason::NoInstance(id.to_string()))) };
        receipt.step(StepName::Described, clock.now());
        let cluster = match decision::by_instance(&instance) {
            Decision::Drain(cluster) => cluster,
            Decision::Ignore(reason) => return Ok(ignored(&reason)),
            Decision::Refuse(refusal) => return Err(refusal.into()),
        };
        receipt.cluster = Some(cluster.to_string());

        let claimant = attempt.claimant();
        let mut held = pin!(attempt.hold(&self.settings));
        let claimed = tokio::select! {
            claimed = self.claim(&cluster, &instance, &claimant, window) => claimed?,
            () = &mut held => {
                receipt.hook_is_over();
                return Ok(ignored(&Reason::HookIsOver));
            }
        };
        let Some((kubernetes, Claimed { claim, pods })) = claimed else {
            return self.no_node(attempt, &instance, cluster, held, receipt).await;
        };
        receipt.node = Some(claim.node.clone());
        receipt.step(StepName::Claimed, clock.now());
        tell_claim(&claim, attempt.interruption);

        let report = drain::drain(&kubernetes, &claim, pods, window, clock, &mut held)
            .await
            .map_err(|error| cannot(format!("list the pods of node {}", claim.node), &cluster, error))?;
        receipt.pods(&report, (clock.now(), Instant::now()));
        let result = match report.end {
            End::Empty | End::Silent => Some(LifecycleResult::Continue),
            End::TimeUp if attempt.is_cut_short() => return ending::drained(report.end, &claim, receipt),
            End::TimeUp => Some(self.settings.undrained_result),
            End::Stopped => None,
        };
        receipt.step(StepName::Drained, clock.now());
        match result {
            Some(result) => self.complete(attempt, result, held, receipt).await?,
            None => receipt.hook_is_over(),
        }
        ending::drained(report.end, &claim, receipt)
    }

    /// Connects and claims. Tried until the window ends.
    async fn claim(
        &self,
        cluster: &ClusterName,
        instance: &Instance,
        claimant: &Claimant,
        window: Window,
    ) -> Result<Option<(kube::Client, Claimed)>, Failure> {
        let tell = |error: &ApiError| {
            tracing::warn!(cluster.name = %cluster, error = %error, "cannot cordon the node; trying again");
        };
        let claimed =
            kubernetes::until(window.end, async || self.try_claim(cluster, instance, claimant, window).await, tell);
        claimed.await.map_err(|error| cannot(format!("cordon the node of instance {}", instance.id), cluster, error))?
    }

    /// The outer error is the API server's, the inner one is of what leads to it.
    async fn try_claim(
        &self,
        cluster: &ClusterName,
        instance: &Instance,
        claimant: &Claimant,
        window: Window,
    ) -> Result<Result<Option<(kube::Client, Claimed)>, Failure>, ApiError> {
        let connection = match self.access.connect(cluster, window.end).await {
            Ok(connection) => connection,
            Err(failure) => return Ok(Err(failure)),
        };
        let claimed = beside::claim_and_list(&connection, instance, claimant).await?;
        Ok(Ok(claimed.map(|claimed| (connection.client, claimed))))
    }

    /// The cluster has no such node: it never joined, or has left. Nobody needs the instance,
    /// so its group must not wait for it.
    async fn no_node(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        cluster: ClusterName,
        held: Pin<&mut impl Future<Output = ()>>,
        receipt: &mut Receipt,
    ) -> Outcome {
        if let Deadline::Hard(at) = attempt.interruption.deadline
            && at < attempt.invocation.clock.now()
        {
            return Err(Failure::TooLate { instance: instance.id.to_string(), deadline: at });
        }
        self.complete(attempt, LifecycleResult::Continue, held, receipt).await?;
        Ok(ignored(&Reason::NoNode { cluster, provider_id: instance.provider_id() }))
    }

    /// Lets the instance go. The hook is held until Auto Scaling has taken the answer.
    async fn complete(
        &self,
        attempt: &Attempt<'_>,
        result: LifecycleResult,
        held: Pin<&mut impl Future<Output = ()>>,
        receipt: &mut Receipt,
    ) -> Result<(), Failure> {
        let Some(action) = &attempt.action else { return Ok(()) };
        let completion = pin!(action.complete(result, attempt.invocation.completes_until()));
        let completion = match select(completion, held).await {
            Either::Left((completion, _)) => completion,
            // Our own answer may be why it waits no longer.
            Either::Right(((), completion)) => completion.await,
        };
        receipt.hook(completion.as_ref().map(|completion| *completion).map_err(|_| ()), result);
        completion?;
        receipt.step(StepName::Completed, attempt.invocation.clock.now());
        Ok(())
    }

    /// Leaves the rest to a later invocation.
    async fn hand_on(&self, attempt: &Attempt<'_>, unfinished: &Failure, receipt: &mut Receipt) -> Outcome {
        let Attempt { history, invocation, action, .. } = attempt;
        let history = history.with(receipt.in_short(invocation.clock.started(), invocation.clock.now()));
        let end = invocation.hands_on_until();
        let (handed_on, ()) = tokio::join!(later::hand_on(&self.eventbridge, &history, end), async {
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

impl Attempt<'_> {
    /// From when to when the node is drained: within this invocation, by the notice's own clock.
    fn window(&self, settings: &Settings) -> Window {
        let clock = self.invocation.clock;
        let least = match self.interruption.deadline {
            Deadline::Hard(_) => LEAST_WINDOW,
            Deadline::HeldByHook => LEAST_WINDOW_OF_A_HOOK,
        };
        // A notice that is ahead of our clock was not sent later than now: it is the clock that is slow.
        let slow_by = self.interruption.time.duration_since(clock.started()).max(SignedDuration::ZERO);
        let limit = self.limits.drain.saturating_sub(slow_by).unwrap_or(Timestamp::MIN);
        let limit = clock.instant(limit.max(clock.now() + least));
        let instance_goes = match (self.interruption.deadline, settings.held_pods) {
            (Deadline::Hard(_), _) | (Deadline::HeldByHook, HeldPods::Delete) => Some(limit),
            (Deadline::HeldByHook, HeldPods::Keep) => None,
        };
        Window {
            start: self.history.began().map_or_else(Instant::now, |began| clock.instant(began)),
            end: limit.min(self.invocation.drains_until()),
            instance_goes,
            margin: settings.margin,
        }
    }

    /// Whether only the invocation's time is up, and not the notice's.
    fn is_cut_short(&self) -> bool {
        self.invocation.is_over_before(self.limits.drain)
    }

    fn claimant(&self) -> Claimant {
        let interruption = self.interruption;
        let until = match interruption.deadline {
            Deadline::Hard(at) => Some(at.to_string()),
            Deadline::HeldByHook => None,
        };
        let mark = Mark {
            event: interruption.event_id.clone(),
            request: self.invocation.request_id.clone(),
            notice: interruption.kind.as_str().to_owned(),
            until,
            cordoned: true,
        };
        Claimant { mark, handed_on_by: self.history.handed_on_by().map(str::to_owned) }
    }

    /// Keeps the hook waiting; ends when nobody waits for us any more. Without a hook, never.
    async fn hold(&self, settings: &Settings) {
        match &self.action {
            Some(action) => action.hold(settings.heartbeat).await,
            None => std::future::pending().await,
        }
    }
}

fn cannot(doing: String, cluster: &ClusterName, error: ApiError) -> Failure {
    Failure::Kubernetes { doing, cluster: cluster.clone(), error }
}

fn tell_claim(claim: &Claim, interruption: &Interruption) {
    let node = &claim.node;
    let how = match &claim.how {
        How::First => format!("cordoned node {node}"),
        How::CordonedByOthers => {
            format!("node {node} was cordoned by somebody else; draining it, and leaving the cordon")
        }
        How::Again => format!("node {node} is ours from an earlier attempt; going on"),
        How::Joined { notice, event } => format!("node {node} is being drained for the {notice} {event}; joining"),
    };
    tracing::info!(node.name = node, instance.id = %interruption.instance, notice.kind = interruption.kind.as_str(), "{how}");
}

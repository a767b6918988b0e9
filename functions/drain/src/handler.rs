//! What happens to a notice, from the event to the receipt, in order.

use jiff::{SignedDuration, Timestamp};
use lambda_runtime::LambdaEvent;
use serde_json::Value;
use spillway_eks::ClusterName;
use tokio::time::{Instant, sleep, timeout_at};

use crate::announce::announce;
use crate::aws;
use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::cluster::Access;
use crate::decision::{self, Decision, Reason};
use crate::drain::beside::{self, Claimed};
use crate::drain::deadline::Window;
use crate::drain::{self, End};
use crate::failure::Failure;
use crate::instance::{self, Instance};
use crate::interruption::{self, Deadline, Interruption, Notice};
use crate::kubernetes::ApiError;
use crate::lifecycle;
use crate::node::{Claim, How, Mark};
use crate::receipt::{Ending, Fate, Receipt, StepName};
use crate::settings::{HeldPods, LifecycleResult, Settings};

/// Kept back at the end of an invocation for completing the hook and writing the receipt.
const RESERVE: SignedDuration = SignedDuration::from_secs(5);
/// A notice that comes late is still worked on this long: clocks differ, and evictions that
/// are asked for at once cost nothing.
const LEAST_WINDOW: SignedDuration = SignedDuration::from_secs(10);

/// Everything a notice needs, made once when the function starts.
#[derive(Debug)]
pub(crate) struct Spillway {
    pub(crate) settings: Settings,
    pub(crate) ec2: aws_sdk_ec2::Client,
    pub(crate) autoscaling: aws_sdk_autoscaling::Client,
    pub(crate) access: Access,
}

/// One invocation: when it began and when it must be over.
struct Invocation {
    clock: Clock,
    end: Timestamp,
}

impl Invocation {
    /// When waiting for anything but the hook has to stop.
    fn last_moment(&self) -> Instant {
        self.clock.instant(self.end.saturating_sub(RESERVE).unwrap_or(Timestamp::MIN))
    }
}

impl Spillway {
    /// Handles one event. The answer is the receipt; an error keeps the event.
    pub(crate) async fn handle(&self, event: LambdaEvent<Value>) -> Result<Receipt, Failure> {
        let clock = Clock::start();
        let end = i64::try_from(event.context.deadline).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let invocation = Invocation { clock, end: end.unwrap_or(Timestamp::MAX) };
        let request_id = event.context.request_id;
        let event_id = event.payload.get("id").and_then(Value::as_str).map(str::to_owned);

        let (mut receipt, outcome) = match interruption::read(event.payload) {
            Ok(Notice::Interruption(interruption)) => {
                let deadline = match interruption.deadline {
                    Deadline::Hard(at) => Some(at),
                    Deadline::HeldByHook => None,
                };
                let mut receipt = Receipt::begin(&request_id, &interruption, deadline);
                let outcome = self.interruption(&interruption, &invocation, &mut receipt).await;
                (receipt, outcome)
            }
            Ok(Notice::Unhandled { event_id, why }) => {
                let receipt = Receipt::without_interruption(&request_id, Some(event_id));
                (receipt, Ok((Ending::Ignored, Reason::NotHandled(why).to_string())))
            }
            Err(error) => (Receipt::without_interruption(&request_id, event_id), Err(error.into())),
        };

        match &outcome {
            Ok((ending, reason)) => receipt.end(*ending, reason.clone()),
            Err(failure) => receipt.fail(failure),
        }
        announce(&receipt, &self.settings.metrics_namespace, clock.now());
        outcome.map(|_| receipt)
    }

    /// The way of an interruption: whose node is it, claim it, empty it, let the instance go.
    async fn interruption(
        &self,
        interruption: &Interruption,
        invocation: &Invocation,
        receipt: &mut Receipt,
    ) -> Result<(Ending, String), Failure> {
        let clock = invocation.clock;
        receipt.step(StepName::Begun, clock.started());
        if let Some(reason) = decision::by_setting(interruption, &self.settings) {
            return Ok(ignored(&reason));
        }

        let window = self.window(interruption, invocation);
        let described = aws::until(window.end, || instance::describe(&self.ec2, &interruption.instance)).await?;
        let Some(instance) = described else {
            return Ok(ignored(&Reason::NoInstance(interruption.instance.to_string())));
        };
        receipt.step(StepName::Described, clock.now());
        let cluster = match decision::by_instance(&instance) {
            Decision::Drain(cluster) => cluster,
            Decision::Ignore(reason) => return Ok(ignored(&reason)),
            Decision::Refuse(refusal) => return Err(refusal.into()),
        };
        receipt.cluster = Some(cluster.to_string());

        let mark = mark(interruption);
        let Some((kubernetes, Claimed { claim, pods })) = self.claim(&cluster, &instance, &mark, window).await? else {
            return self.no_node(interruption, &instance, cluster, invocation, receipt).await;
        };
        receipt.node = Some(claim.node.clone());
        receipt.step(StepName::Claimed, clock.now());
        tell_claim(&claim, interruption);

        let report = drain::drain(&kubernetes, &claim.node, pods, window, clock, self.hold(interruption))
            .await
            .map_err(|error| cannot(format!("list the pods of node {}", claim.node), &cluster, error))?;
        receipt.step(StepName::Drained, clock.now());
        receipt.pods(&report, (clock.now(), Instant::now()));
        if report.end == End::Stopped {
            receipt.hook_is_over();
        }

        if let Some(result) = self.result(report.end, interruption, invocation) {
            self.complete(interruption, result, invocation, receipt).await?;
        }
        ending(report.end, &claim, receipt)
    }

    fn window(&self, interruption: &Interruption, invocation: &Invocation) -> Window {
        let clock = invocation.clock;
        let (until, instance_goes) = match interruption.deadline {
            Deadline::Hard(at) => {
                let at = clock.instant(at.max(clock.now() + LEAST_WINDOW));
                (at, Some(at))
            }
            Deadline::HeldByHook => {
                let limit = clock.instant(self.hook_limit(interruption));
                match self.settings.held_pods {
                    HeldPods::Keep => (limit, None),
                    HeldPods::Delete => (limit, Some(limit)),
                }
            }
        };
        let margin = self.settings.margin;
        Window { start: Instant::now(), end: until.min(invocation.last_moment()), instance_goes, margin }
    }

    /// Until when a hook may be held.
    fn hook_limit(&self, interruption: &Interruption) -> Timestamp {
        interruption.time.saturating_add(self.settings.hook_max_wait).unwrap_or(Timestamp::MAX)
    }

    /// Connects and claims. A connection that fails makes us ask EKS anew: the cluster may have
    /// a new certificate authority. Tried until the window ends.
    async fn claim(
        &self,
        cluster: &ClusterName,
        instance: &Instance,
        mark: &Mark,
        window: Window,
    ) -> Result<Option<(kube::Client, Claimed)>, Failure> {
        let mut backoff = Backoff::new();
        loop {
            let connection = self.access.connect(cluster, window.end).await?;
            let error = match beside::claim_and_list(&connection, instance, mark).await {
                Ok(claimed) => return Ok(claimed.map(|claimed| (connection.client, claimed))),
                Err(error) => error,
            };
            if matches!(error, ApiError::NoConnection(_)) {
                self.access.forget(cluster);
            }
            let pause = sleep(backoff.next_pause());
            if !error.is_transient() || timeout_at(window.end, pause).await.is_err() {
                return Err(cannot(format!("cordon the node of instance {}", instance.id), cluster, error));
            }
            tracing::warn!(cluster.name = %cluster, error = %error, "cannot cordon the node; trying again");
        }
    }

    /// The cluster has no such node: it never joined, or has left. Nobody needs the instance,
    /// so its group must not wait for it.
    async fn no_node(
        &self,
        interruption: &Interruption,
        instance: &Instance,
        cluster: ClusterName,
        invocation: &Invocation,
        receipt: &mut Receipt,
    ) -> Result<(Ending, String), Failure> {
        if let Deadline::Hard(at) = interruption.deadline
            && at < invocation.clock.now()
        {
            return Err(Failure::TooLate { instance: instance.id.to_string(), deadline: at });
        }
        self.complete(interruption, LifecycleResult::Continue, invocation, receipt).await?;
        Ok(ignored(&Reason::NoNode { cluster, provider_id: instance.provider_id() }))
    }

    /// Keeps the hook waiting; ends when nobody waits for us any more. Without a hook, never.
    async fn hold(&self, interruption: &Interruption) {
        match self.action(interruption) {
            Some(action) => action.hold(self.settings.heartbeat).await,
            None => std::future::pending().await,
        }
    }

    fn action<'a>(&'a self, interruption: &'a Interruption) -> Option<lifecycle::Action<'a>> {
        let hook = interruption.hook.as_ref()?;
        Some(lifecycle::Action { client: &self.autoscaling, hook, instance: &interruption.instance })
    }

    /// What to tell Auto Scaling. Nothing, when nobody waits any more, or when only this
    /// invocation's time is up and not the hook's: the retry goes on from here.
    fn result(&self, end: End, interruption: &Interruption, invocation: &Invocation) -> Option<LifecycleResult> {
        let hook_limit = invocation.clock.instant(self.hook_limit(interruption));
        match end {
            End::Empty | End::Silent => Some(LifecycleResult::Continue),
            End::TimeUp if hook_limit <= invocation.last_moment() => Some(self.settings.undrained_result),
            End::TimeUp | End::Stopped => None,
        }
    }

    async fn complete(
        &self,
        interruption: &Interruption,
        result: LifecycleResult,
        invocation: &Invocation,
        receipt: &mut Receipt,
    ) -> Result<(), Failure> {
        let Some(action) = self.action(interruption) else { return Ok(()) };
        let end = invocation.clock.instant(invocation.end.saturating_sub(RESERVE / 2).unwrap_or(Timestamp::MIN));
        let completion = action.complete(result, end).await;
        receipt.hook(completion.as_ref().map(|completion| *completion).map_err(|_| ()), result);
        completion?;
        receipt.step(StepName::Completed, invocation.clock.now());
        Ok(())
    }
}

fn ignored(reason: &Reason) -> (Ending, String) {
    (Ending::Ignored, reason.to_string())
}

fn cannot(doing: String, cluster: &ClusterName, error: ApiError) -> Failure {
    Failure::Kubernetes { doing, cluster: cluster.clone(), error }
}

fn mark(interruption: &Interruption) -> Mark {
    let until = match interruption.deadline {
        Deadline::Hard(at) => Some(at.to_string()),
        Deadline::HeldByHook => None,
    };
    Mark { event: interruption.event_id.clone(), notice: interruption.kind.as_str().to_owned(), until, cordoned: true }
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

fn ending(end: End, claim: &Claim, receipt: &Receipt) -> Result<(Ending, String), Failure> {
    let node = &claim.node;
    let left = receipt.count(Fate::Left);
    let moved = receipt.count(Fate::Clean) + receipt.count(Fate::Clamped) + receipt.count(Fate::Forced);
    match (end, &claim.how) {
        (End::Empty, How::First | How::CordonedByOthers | How::Again) => {
            Ok((Ending::Drained, format!("all {moved} pods that had to leave node {node} have gone")))
        }
        (End::Silent, How::First | How::CordonedByOthers | How::Again) => {
            let unconfirmed = receipt.count(Fate::Unconfirmed);
            let reason = format!(
                "node {node} has stopped answering: {moved} pods have gone, and {unconfirmed} that had to are not waited for"
            );
            Ok((Ending::Drained, reason))
        }
        (End::Empty | End::Silent, How::Joined { notice, event }) => {
            Ok((Ending::Joined, format!("node {node} was being drained for the {notice} {event}, and is empty")))
        }
        (End::Stopped, _) => {
            let reason = format!("the lifecycle hook waits no longer; {left} pods were still on node {node}");
            Ok((Ending::Ignored, reason))
        }
        (End::TimeUp, _) => Err(Failure::PodsLeft { node: node.clone(), left, all: left + moved }),
    }
}

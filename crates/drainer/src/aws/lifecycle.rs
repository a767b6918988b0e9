//! Auto Scaling's lifecycle actions: held while the node drains, completed when it is empty.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use aws_sdk_autoscaling::Client;
use aws_sdk_autoscaling::operation::RequestId as _;
use aws_sdk_autoscaling::operation::complete_lifecycle_action::CompleteLifecycleActionError;
use aws_sdk_autoscaling::types::LifecycleHook;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use spillway_core::hook_timeouts::HookTimeouts;
use spillway_notice::{Hook, InstanceId};
use spillway_settings::LifecycleResult;
use spillway_startup::logs::chain;
use tokio::sync::{Notify, OnceCell, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::aws::{self, CallError, retention};

const DESCRIBE: &str = "autoscaling:DescribeLifecycleHooks";
const RECORD: &str = "autoscaling:RecordLifecycleActionHeartbeat";
const COMPLETE: &str = "autoscaling:CompleteLifecycleAction";

/// EC2 answers sooner as a rule, and then says whose the instance is: most hooks of an account are none of ours to hold.
const UNHELD: Duration = Duration::from_secs(1);
/// A node is not kept in use for longer because Auto Scaling cannot be asked: its drain has a hook's minutes.
const ASKED_FOR: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct LifecycleAction<'a> {
    client: &'a Client,
    hook: &'a Hook,
    instance: &'a InstanceId,
    /// What Auto Scaling says of the hook, once it has.
    timeouts: OnceCell<HookTimeouts>,
    held_at: RefCell<Vec<Instant>>,
    /// Notified when it is known to be ours to hold.
    ours: Notify,
    /// Whether the instance stays if it is abandoned, as the last answer said.
    is_kept: Cell<bool>,
    state: watch::Sender<ActionState>,
    /// Whether it has had its answer, or whoever waited for its end has been told that it is over.
    is_settled: Cell<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    Completed,
    /// Nobody waited any more: it had been completed, or its time had passed.
    AlreadyOver,
}

/// Whether an action waits for us, as the last heartbeat found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionState {
    Unknown,
    /// The action waits, from now on for its whole timeout.
    Waiting,
    Over,
}

impl<'a> LifecycleAction<'a> {
    /// The action at that hook; and whether the instance stays if it is abandoned, as earlier invocations know.
    pub(crate) fn new(client: &'a Client, hook: &'a Hook, instance: &'a InstanceId, is_kept: bool) -> Self {
        Self {
            client,
            hook,
            instance,
            timeouts: OnceCell::new(),
            held_at: RefCell::default(),
            ours: Notify::new(),
            is_kept: Cell::new(is_kept),
            state: watch::Sender::new(ActionState::Unknown),
            is_settled: Cell::new(false),
        }
    }

    /// The timeouts of the hook. Auto Scaling is asked once.
    pub(crate) async fn timeouts(&self) -> HookTimeouts {
        let look_up = async || {
            waits(self.client, self.hook).await.unwrap_or_else(|error| {
                tracing::warn!(
                    hook.name = self.hook.name,
                    error = chain(&error),
                    "cannot read the hook's timeouts; using Auto Scaling's shortest for heartbeats, 30 s"
                );
                HookTimeouts::unknown()
            })
        };
        *self.timeouts.get_or_init(look_up).await
    }

    /// The timeouts, if Auto Scaling has said them.
    pub(crate) fn known_timeouts(&self) -> Option<HookTimeouts> {
        self.timeouts.get().copied()
    }

    /// Sends heartbeats until nobody waits any more: from when the action is known to be ours, or after a second.
    pub(crate) async fn hold(&self) {
        // Until then there is no harm in waiting, and after it the hook's timeout might be near.
        let (timeouts, _) = tokio::join!(self.timeouts(), timeout(UNHELD, self.ours.notified()));
        until_over(timeouts.heartbeat_interval(), || self.heartbeat()).await;
        tracing::info!(hook.name = self.hook.name, "lifecycle hook {} waits no longer", self.hook.name);
    }

    /// Asks Auto Scaling until `end` whether the group keeps the instance if the action is abandoned. Without an answer the last
    /// one holds.
    pub(crate) async fn look_up_retention(&self, end: Instant) {
        if let Some(is_kept) = retention::look_up(self.client, &self.hook.group, end).await {
            self.is_kept.set(is_kept);
        }
    }

    /// Whether the group keeps the instance, as the last answer said.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.get()
    }

    pub(crate) fn confirm_ours(&self) {
        self.ours.notify_one();
    }

    /// Ends when a heartbeat finds that nobody waits any more.
    pub(crate) async fn wait_until_over(&self) {
        let _ = self.state.subscribe().wait_for(|state| *state == ActionState::Over).await;
        self.is_settled.set(true);
    }

    /// Whether nothing is left to answer: it was completed, or that was tried, or somebody has seen that it is over.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled.get()
    }

    /// Ends when a heartbeat has found whether somebody waits, and if none finds out, after [`ASKED_FOR`].
    pub(crate) async fn wait_until_known(&self) {
        let _ = timeout(ASKED_FOR, self.state.subscribe().wait_for(|state| *state != ActionState::Unknown)).await;
    }

    /// A heartbeat for a later invocation: it has the whole timeout to begin. `None` if the heartbeat failed.
    pub(crate) async fn hold_for_the_next(&self, end: Instant) -> Option<ActionState> {
        aws::until(RECORD, end, || self.heartbeat()).await.inspect_err(tell_lost).ok()
    }

    /// Completes the action. Tried until `end`, because a hook that is left waiting blocks its
    /// group.
    pub(crate) async fn complete(&self, result: LifecycleResult, end: Instant) -> Result<Completion, CallError> {
        self.is_settled.set(true);
        aws::until(COMPLETE, end, || self.try_complete(result)).await
    }

    pub(crate) fn held_at(&self) -> Vec<Instant> {
        self.held_at.borrow().clone()
    }

    async fn try_complete(&self, result: LifecycleResult) -> Result<Completion, CallError> {
        let call = self
            .client
            .complete_lifecycle_action()
            .auto_scaling_group_name(&self.hook.group)
            .lifecycle_hook_name(&self.hook.name)
            .lifecycle_action_result(result.as_str())
            .instance_id(self.instance.as_str())
            .set_lifecycle_action_token(self.hook.token.clone());
        match call.send().await {
            Ok(answer) if answer.request_id().is_some() => Ok(Completion::Completed),
            // The answer has nothing else in it, so that the SDK would take any page for one.
            Ok(_) => Err(CallError::unanswered(COMPLETE, "what came is not of Auto Scaling: it names no request")),
            Err(error) if error.as_service_error().is_some_and(is_over::<CompleteLifecycleActionError>) => {
                Ok(Completion::AlreadyOver)
            }
            Err(error) => Err(CallError::new(COMPLETE, error)),
        }
    }

    async fn heartbeat(&self) -> Result<ActionState, CallError> {
        let call = self
            .client
            .record_lifecycle_action_heartbeat()
            .auto_scaling_group_name(&self.hook.group)
            .lifecycle_hook_name(&self.hook.name)
            .instance_id(self.instance.as_str())
            .set_lifecycle_action_token(self.hook.token.clone());
        match call.send().await {
            Ok(_) => {
                self.held_at.borrow_mut().push(Instant::now());
                Ok(self.note(ActionState::Waiting))
            }
            Err(error) if error.as_service_error().is_some_and(is_over) => Ok(self.note(ActionState::Over)),
            Err(error) => Err(CallError::new(RECORD, error)),
        }
    }

    fn note(&self, state: ActionState) -> ActionState {
        self.state.send_replace(state);
        state
    }
}

pub fn timeouts(hook: &LifecycleHook) -> HookTimeouts {
    HookTimeouts::described(hook.heartbeat_timeout, hook.global_timeout)
}

async fn waits(client: &Client, hook: &Hook) -> Result<HookTimeouts, CallError> {
    let call = client.describe_lifecycle_hooks().auto_scaling_group_name(&hook.group).lifecycle_hook_names(&hook.name);
    let answer = call.send().await.map_err(|error| CallError::new(DESCRIBE, error))?;
    // A hook that is gone waits for nobody, as the first heartbeat will tell.
    Ok(answer.lifecycle_hooks().first().map_or_else(HookTimeouts::unknown, timeouts))
}

/// Sends a heartbeat at once, because much of the timeout may have passed, and then one in each
/// interval. One that fails is tried again until the next is due.
async fn until_over<F>(interval: Duration, mut heartbeat: impl FnMut() -> F)
where
    F: Future<Output = Result<ActionState, CallError>>,
{
    loop {
        let next = Instant::now() + interval;
        match aws::until(RECORD, next, &mut heartbeat).await {
            Ok(ActionState::Over) => return,
            Ok(ActionState::Waiting | ActionState::Unknown) => {}
            Err(error) => tell_lost(&error),
        }
        sleep_until(next).await;
    }
}

fn tell_lost(error: &CallError) {
    tracing::warn!(error = chain(&error), "a heartbeat failed; the next one follows");
}

/// "No active Lifecycle Action found with instance ID i-…" (or "with token …"), which comes as
/// a `ValidationError`: the text is all there is to tell it by.
fn is_over<E: ProvideErrorMetadata>(error: &E) -> bool {
    error.message().is_some_and(|message| message.to_lowercase().contains("no active lifecycle action found"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use spillway_core::hook_timeouts::LONGEST;

    use super::*;
    use crate::test_support;
    use crate::test_support::aws::query_error;
    use crate::test_support::context::TestContext;
    use crate::test_support::script::call;

    #[tokio::test(start_paused = true)]
    async fn a_hook_whose_timeouts_cannot_be_read_is_held_as_one_with_auto_scalings_shortest() {
        let denied = call("DescribeLifecycleHooks").says(403, query_error("AccessDenied", "why"));
        let context = TestContext::new(&[], [], [denied]);
        let (hook, instance) = (test_support::hook("spillway"), test_support::instance_id());
        let action = LifecycleAction::new(&context.autoscaling, &hook, &instance, false);
        assert_eq!(
            action.timeouts().await.heartbeat_interval(),
            Duration::from_secs(15),
            "Auto Scaling waits for 30 s at least"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn whether_a_hook_waits_is_waited_for_no_longer_than_five_seconds() {
        let context = TestContext::new(&[], [], []);
        let (hook, instance) = (test_support::hook("spillway"), test_support::instance_id());
        let action = LifecycleAction::new(&context.autoscaling, &hook, &instance, false);
        let began = Instant::now();
        action.wait_until_known().await;
        assert_eq!(began.elapsed().as_secs(), 5);
    }

    /// A hook that waits for its timeout after each heartbeat, and 48 hours in all. The heartbeats
    /// whose number `lost` accepts get no answer the first time.
    async fn held(timeout: Duration, lost: fn(u32) -> bool) -> (Duration, u32) {
        let began = Instant::now();
        let (latest, sent, failed) = (Cell::new(began), Cell::new(0), Cell::new(false));
        let interval = HookTimeouts { timeout, total: LONGEST }.heartbeat_interval();
        until_over(interval, || {
            let now = Instant::now();
            let waits = now - latest.get() < timeout && now - began < LONGEST;
            if waits && lost(sent.get()) && !failed.replace(true) {
                return std::future::ready(Err(CallError::unanswered(RECORD, "made by the test")));
            }
            failed.set(false);
            sent.set(sent.get() + 1);
            latest.set(now);
            std::future::ready(Ok(if waits { ActionState::Waiting } else { ActionState::Over }))
        })
        .await;
        (began.elapsed(), sent.get())
    }

    #[tokio::test(start_paused = true)]
    async fn a_hook_is_held_for_48_hours_and_then_let_go() {
        assert_eq!(held(Duration::from_hours(2), |_| false).await, (LONGEST, 49));
        assert_eq!(held(Duration::from_mins(30), |_| false).await, (LONGEST, 193));
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_that_is_lost_does_not_cost_the_hook() {
        let (held, _) = held(Duration::from_mins(30), |number| number % 2 == 1).await;
        assert!(held >= LONGEST, "{held:?}");
    }
}

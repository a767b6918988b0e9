//! Holds a lifecycle action of Auto Scaling with heartbeats during the drain, then completes the action.

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
use tokio::sync::{OnceCell, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::aws::{self, CallError, retention};

const DESCRIBE: &str = "autoscaling:DescribeLifecycleHooks";
const RECORD: &str = "autoscaling:RecordLifecycleActionHeartbeat";
const COMPLETE: &str = "autoscaling:CompleteLifecycleAction";

/// Maximum wait for [`LifecycleAction::confirm_ours`] before the first heartbeat.
const CONFIRMATION_WAIT: Duration = Duration::from_secs(1);
/// Maximum wait for the answer to the first heartbeat.
const FIRST_HEARTBEAT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct LifecycleAction<'a> {
    client: &'a Client,
    hook: &'a Hook,
    instance: &'a InstanceId,
    timeouts: OnceCell<HookTimeouts>,
    progress: watch::Sender<ActionProgress>,
}

/// Progress of a lifecycle action in this invocation.
#[derive(Debug, Default)]
struct ActionProgress {
    state: ActionState,
    /// Times of the successful heartbeats.
    heartbeats: Vec<Instant>,
    /// `true` after [`LifecycleAction::confirm_ours`], until [`LifecycleAction::hold`] sends heartbeats.
    is_confirmed: bool,
    /// `true` if the group is known to keep instances whose lifecycle action is abandoned.
    is_kept: bool,
    /// `true` after the start of [`LifecycleAction::complete`] or the end of [`LifecycleAction::wait_until_over`].
    is_settled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    Completed,
    /// Spillway's call came too late: the action had been completed or had timed out.
    AlreadyOver,
}

/// State of a lifecycle action, from the answer to the last heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ActionState {
    #[default]
    Unknown,
    /// The action waits. The heartbeat has restarted the action's timeout.
    Waiting,
    Over,
}

impl<'a> LifecycleAction<'a> {
    /// Creates the lifecycle action of a hook. `is_kept` is `true` if the group is already known to keep instances whose action
    /// is abandoned.
    pub(crate) fn new(client: &'a Client, hook: &'a Hook, instance: &'a InstanceId, is_kept: bool) -> Self {
        Self {
            client,
            hook,
            instance,
            timeouts: OnceCell::new(),
            progress: watch::Sender::new(ActionProgress { is_kept, ..ActionProgress::default() }),
        }
    }

    pub(crate) async fn timeouts(&self) -> HookTimeouts {
        let look_up = async || {
            describe_timeouts(self.client, self.hook).await.unwrap_or_else(|error| {
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

    pub(crate) fn known_timeouts(&self) -> Option<HookTimeouts> {
        self.timeouts.get().copied()
    }

    /// Sends heartbeats until the action is over. Starts after [`Self::confirm_ours`], at the latest after [`CONFIRMATION_WAIT`].
    pub(crate) async fn hold(&self) {
        // Does not wait longer, because much of the hook's timeout may have passed.
        let confirmed = async {
            if timeout(CONFIRMATION_WAIT, self.wait_for(|progress| progress.is_confirmed)).await.is_ok() {
                self.update(|progress| progress.is_confirmed = false);
            }
        };
        let (timeouts, ()) = tokio::join!(self.timeouts(), confirmed);
        until_over(timeouts.heartbeat_interval(), || self.heartbeat()).await;
        tracing::info!(hook.name = self.hook.name, "lifecycle hook {} waits no longer", self.hook.name);
    }

    /// Reads whether the group keeps an instance whose action is abandoned. Retries until `end`. On failure, keeps `is_kept`.
    pub(crate) async fn look_up_retention(&self, end: Instant) {
        if let Some(is_kept) = retention::look_up(self.client, &self.hook.group, end).await {
            self.update(|progress| progress.is_kept = is_kept);
        }
    }

    pub(crate) fn keeps_instance(&self) -> bool {
        self.progress.borrow().is_kept
    }

    /// Records that Spillway handles the instance, so that [`Self::hold`] starts.
    pub(crate) fn confirm_ours(&self) {
        self.update(|progress| progress.is_confirmed = true);
    }

    /// Waits until a heartbeat finds that the lifecycle action is over.
    pub(crate) async fn wait_until_over(&self) {
        self.wait_for(|progress| progress.state == ActionState::Over).await;
        self.update(|progress| progress.is_settled = true);
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.progress.borrow().is_settled
    }

    /// Waits for the answer to the first heartbeat, at most for [`FIRST_HEARTBEAT`].
    pub(crate) async fn wait_until_known(&self) {
        let _ = timeout(FIRST_HEARTBEAT, self.wait_for(|progress| progress.state != ActionState::Unknown)).await;
    }

    /// Sends a heartbeat, so that the action waits for a later invocation. Retries until `end`. `None` if the heartbeat failed.
    pub(crate) async fn hold_for_the_next(&self, end: Instant) -> Option<ActionState> {
        aws::until(RECORD, end, || self.heartbeat()).await.inspect_err(log_failed).ok()
    }

    /// Completes the action, with retries until `end`.
    pub(crate) async fn complete(&self, result: LifecycleResult, end: Instant) -> Result<Completion, CallError> {
        self.update(|progress| progress.is_settled = true);
        aws::until(COMPLETE, end, || self.try_complete(result)).await
    }

    pub(crate) fn held_at(&self) -> Vec<Instant> {
        self.progress.borrow().heartbeats.clone()
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
            // A real answer has only a request id, so the SDK accepts any page as an answer.
            Ok(_) => {
                Err(CallError::unanswered(COMPLETE, "the answer has no request id, so it is not from Auto Scaling"))
            }
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
            Ok(_) => Ok(self.note(ActionState::Waiting)),
            Err(error) if error.as_service_error().is_some_and(is_over) => Ok(self.note(ActionState::Over)),
            Err(error) => Err(CallError::new(RECORD, error)),
        }
    }

    fn note(&self, state: ActionState) -> ActionState {
        self.update(|progress| {
            progress.state = state;
            progress.heartbeats.extend((state == ActionState::Waiting).then(Instant::now));
        });
        state
    }

    fn update(&self, change: impl FnOnce(&mut ActionProgress)) {
        self.progress.send_modify(change);
    }

    async fn wait_for(&self, is_reached: impl FnMut(&ActionProgress) -> bool) {
        let _ = self.progress.subscribe().wait_for(is_reached).await;
    }
}

pub fn timeouts(hook: &LifecycleHook) -> HookTimeouts {
    HookTimeouts::described(hook.heartbeat_timeout, hook.global_timeout)
}

async fn describe_timeouts(client: &Client, hook: &Hook) -> Result<HookTimeouts, CallError> {
    let call = client.describe_lifecycle_hooks().auto_scaling_group_name(&hook.group).lifecycle_hook_names(&hook.name);
    let answer = call.send().await.map_err(|error| CallError::new(DESCRIBE, error))?;
    // If the hook was deleted, the first heartbeat finds the action over.
    Ok(answer.lifecycle_hooks().first().map_or_else(HookTimeouts::unknown, timeouts))
}

/// Sends a heartbeat at once and after each `interval`, until the action is over. Retries a failed heartbeat until the next one
/// is due.
async fn until_over<F>(interval: Duration, mut heartbeat: impl FnMut() -> F)
where
    F: Future<Output = Result<ActionState, CallError>>,
{
    loop {
        let next = Instant::now() + interval;
        match aws::until(RECORD, next, &mut heartbeat).await {
            Ok(ActionState::Over) => return,
            Ok(ActionState::Waiting | ActionState::Unknown) => {}
            Err(error) => log_failed(&error),
        }
        sleep_until(next).await;
    }
}

fn log_failed(error: &CallError) {
    tracing::warn!(error = chain(&error), "a heartbeat failed; the next one follows");
}

/// Returns `true` if the message is "No active Lifecycle Action found". Auto Scaling's error has no code of its own.
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
    async fn silent_auto_scaling_means_shortest_timeouts_and_5_s() {
        let denied = call("DescribeLifecycleHooks").says(403, query_error("AccessDenied", "why"));
        let context = TestContext::new(&[], [], [denied]);
        let (hook, instance) = (test_support::hook("spillway"), test_support::instance_id());
        let action = LifecycleAction::new(&context.autoscaling, &hook, &instance, false);
        let interval = action.timeouts().await.heartbeat_interval();
        assert_eq!(interval, Duration::from_secs(15), "the shortest timeout is 30 s");
        let began = Instant::now();
        action.wait_until_known().await;
        assert_eq!(began.elapsed().as_secs(), 5);
    }

    /// Holds a hook with this timeout and 48 hours in all: the time held and the number of heartbeats. The first attempt at a
    /// heartbeat fails if `lost` accepts its number.
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
    async fn hook_is_held_for_48_hours_in_spite_of_lost_heartbeats() {
        assert_eq!(held(Duration::from_hours(2), |_| false).await, (LONGEST, 49));
        assert_eq!(held(Duration::from_mins(30), |_| false).await, (LONGEST, 193));
        let (held, _) = held(Duration::from_mins(30), |number| number % 2 == 1).await;
        assert!(held >= LONGEST, "{held:?}");
    }
}

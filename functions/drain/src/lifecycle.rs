//! Auto Scaling's lifecycle actions: held while the node drains, completed when it is empty.

use std::time::Duration;

use aws_sdk_autoscaling::Client;
use aws_sdk_autoscaling::operation::complete_lifecycle_action::CompleteLifecycleActionError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use tokio::time::{Instant, sleep};

use crate::aws::{self, CallError};
use crate::interruption::{Hook, InstanceId};
use crate::settings::{Heartbeat, LifecycleResult};

/// The least `HeartbeatTimeout` that Auto Scaling allows: what we reckon with while we cannot
/// ask for the hook's own.
const LEAST_HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);

/// A lifecycle action of one instance.
#[derive(Debug, Clone)]
pub(crate) struct Action<'a> {
    pub(crate) client: &'a Client,
    pub(crate) hook: &'a Hook,
    pub(crate) instance: &'a InstanceId,
}

/// How completing an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// Auto Scaling goes on with the termination.
    Completed,
    /// Nobody waited any more: it had been completed, or its time had passed.
    AlreadyOver,
}

impl Action<'_> {
    /// Sends heartbeats for as long as the action waits; returns when nobody waits any more.
    pub(crate) async fn hold(&self, heartbeat: Heartbeat) {
        // Twice in each timeout, so that one that is lost does no harm; the first at once, because
        // a retry comes when much of the timeout has passed.
        let half = self.heartbeat_timeout().await / 2;
        let interval = match heartbeat {
            Heartbeat::Half => half,
            Heartbeat::After(interval) => interval.min(half),
        };
        loop {
            match self.heartbeat().await {
                Ok(Completion::Completed) => {}
                Ok(Completion::AlreadyOver) => {
                    tracing::info!(hook.name = self.hook.name, "lifecycle hook {} waits no longer", self.hook.name);
                    return;
                }
                Err(error) => {
                    tracing::warn!(hook.name = self.hook.name, error = %error, "a heartbeat failed; the next one follows");
                }
            }
            sleep(interval).await;
        }
    }

    /// Completes the action. Tried until `end`, because a hook that is left waiting blocks its
    /// group.
    pub(crate) async fn complete(&self, result: LifecycleResult, end: Instant) -> Result<Completion, CallError> {
        aws::until(end, || self.try_complete(result)).await
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
            Ok(_) => Ok(Completion::Completed),
            Err(error) if error.as_service_error().is_some_and(is_over::<CompleteLifecycleActionError>) => {
                Ok(Completion::AlreadyOver)
            }
            Err(error) => Err(CallError::new("autoscaling:CompleteLifecycleAction", &error)),
        }
    }

    async fn heartbeat(&self) -> Result<Completion, CallError> {
        let call = self
            .client
            .record_lifecycle_action_heartbeat()
            .auto_scaling_group_name(&self.hook.group)
            .lifecycle_hook_name(&self.hook.name)
            .instance_id(self.instance.as_str())
            .set_lifecycle_action_token(self.hook.token.clone());
        match call.send().await {
            Ok(_) => Ok(Completion::Completed),
            Err(error) if error.as_service_error().is_some_and(is_over) => Ok(Completion::AlreadyOver),
            Err(error) => Err(CallError::new("autoscaling:RecordLifecycleActionHeartbeat", &error)),
        }
    }

    async fn heartbeat_timeout(&self) -> Duration {
        let call = self
            .client
            .describe_lifecycle_hooks()
            .auto_scaling_group_name(&self.hook.group)
            .lifecycle_hook_names(&self.hook.name);
        let hooks = match call.send().await {
            Ok(answer) => answer.lifecycle_hooks.unwrap_or_default(),
            Err(error) => {
                let error = CallError::new("autoscaling:DescribeLifecycleHooks", &error);
                tracing::warn!(
                    hook.name = self.hook.name, error = %error,
                    "cannot read the hook's heartbeat timeout; reckoning with Auto Scaling's shortest, 30 s"
                );
                return LEAST_HEARTBEAT_TIMEOUT;
            }
        };
        let seconds = hooks.first().and_then(|hook| hook.heartbeat_timeout).and_then(|s| u64::try_from(s).ok());
        seconds.map_or(LEAST_HEARTBEAT_TIMEOUT, Duration::from_secs)
    }
}

impl LifecycleResult {
    /// As Auto Scaling spells it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "CONTINUE",
            Self::Abandon => "ABANDON",
        }
    }
}

/// "No active Lifecycle Action found with instance ID i-…" (or "with token …"), which comes as
/// a `ValidationError`: the text is all there is to tell it by.
fn is_over<E: ProvideErrorMetadata>(error: &E) -> bool {
    error.message().is_some_and(|message| message.to_lowercase().contains("no active lifecycle action found"))
}

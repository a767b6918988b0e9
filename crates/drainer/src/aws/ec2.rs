//! Reads instances and scheduled events from EC2.

use std::cell::Cell;
use std::time::Duration;

use aws_sdk_ec2::config;
use aws_sdk_ec2::config::timeout::TimeoutConfig;
use aws_sdk_ec2::operation::describe_instances::builders::DescribeInstancesFluentBuilder;
use aws_sdk_ec2::types::{Filter, Instance as Ec2Instance, InstanceStateName, InstanceStatusEvent};
use aws_smithy_types::error::metadata::ProvideErrorMetadata as _;
use jiff::Timestamp;
use spillway_core::instance::{Instance, InstanceState};
use spillway_notice::{InstanceId, ScheduledEvent};
use spillway_retry::{Backoff, Transient, jittered};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use crate::aws::{self, CallError};

pub const DESCRIBE: &str = "ec2:DescribeInstances";
pub(crate) const DESCRIBE_STATUS: &str = "ec2:DescribeInstanceStatus";
/// All codes of EC2's scheduled events.
const EVENT_CODES: [&str; 5] =
    ["instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"];
/// EC2's maximum number of values in a filter.
const MOST_VALUES: usize = 200;
/// Maximum time for repeated calls while EC2's description of an instance is older than the notice.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(30);

/// Timeout of the first attempt of a call, doubled after each attempt that exceeds its timeout.
const FIRST_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum timeout of an attempt. The SDK panics if the timeout is too large.
const LONGEST_TIMEOUT: Duration = Duration::from_mins(1);

/// All instance states. A filter with these values matches every instance.
const ALL_STATES: [&str; 6] = ["pending", "running", "shutting-down", "terminated", "stopping", "stopped"];

/// Form of a `DescribeInstances` call. EC2 throttles each form separately ("Request throttling for the Amazon EC2 API").
#[derive(Debug, Clone, Copy)]
enum RequestForm {
    /// The call has the instance id and a filter that matches every state. EC2 allows 100 calls at once, then 20 per second.
    Filtered,
    /// The call has the instance id and no filter. EC2 allows 50 calls at once, then 10 per second.
    IdAlone,
}

impl RequestForm {
    fn other(self) -> Self {
        match self {
            Self::Filtered => Self::IdAlone,
            Self::IdAlone => Self::Filtered,
        }
    }
}

/// Describes an instance, with retries until `end`. `None` if EC2 does not know the id. If the description is older than the
/// notice (`is_behind`), repeats the call for at most [`CATCHES_UP_WITHIN`]. Signals `throttled` each time EC2 throttles a call.
pub(crate) async fn describe(
    ec2: &aws_sdk_ec2::Client,
    id: &InstanceId,
    end: Instant,
    throttled: &Notify,
    is_behind: impl Fn(Option<&Instance>) -> bool,
) -> Result<Option<Instance>, CallError> {
    let form = &Cell::new(RequestForm::Filtered);
    let call = |timeout| async move {
        let answer = describe_once(ec2, id, form.get(), timeout).await;
        if answer.as_ref().is_err_and(Transient::is_throttled) {
            form.set(form.get().other());
            throttled.notify_one();
        }
        answer
    };
    let call_until_answered = async || {
        let timeout = Cell::new(FIRST_TIMEOUT);
        let attempt = async || {
            let began = Instant::now();
            let answer = call(timeout.get()).await;
            if timeout.get() <= began.elapsed() {
                timeout.set((timeout.get() * 2).min(LONGEST_TIMEOUT));
            }
            answer
        };
        aws::until(DESCRIBE, end, attempt).await
    };
    let patience = end.min(Instant::now() + CATCHES_UP_WITHIN);
    let mut backoff = Backoff::new();
    let mut described = call_until_answered().await?;
    while is_behind(described.as_ref()) && timeout_at(patience, sleep(jittered(backoff.next_pause()))).await.is_ok() {
        described = match call_until_answered().await {
            // The earlier answer is used.
            Err(_) if end <= Instant::now() => break,
            answer => answer?,
        };
    }
    Ok(described)
}

async fn describe_once(
    ec2: &aws_sdk_ec2::Client,
    id: &InstanceId,
    form: RequestForm,
    timeout: Duration,
) -> Result<Option<Instance>, CallError> {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(timeout).operation_timeout(timeout).build();
    let call = ec2.describe_instances().instance_ids(id.as_str());
    let call = match form {
        RequestForm::Filtered => call.filters(filter("instance-state-name", &ALL_STATES)),
        RequestForm::IdAlone => call,
    };
    let answer = match call.customize().config_override(config::Builder::new().timeout_config(timeouts)).send().await {
        Ok(answer) => answer,
        Err(error) if error.as_service_error().and_then(|e| e.code()) == Some("InvalidInstanceID.NotFound") => {
            return Ok(None);
        }
        Err(error) => return Err(CallError::new(DESCRIBE, error)),
    };
    let found = answer.reservations.into_iter().flatten().flat_map(|r| r.instances.unwrap_or_default()).next();
    Ok(found.map(|instance| from_ec2(id.clone(), instance)))
}

/// Lists the pending, running and stopping instances of a capacity reservation.
pub(crate) async fn of_reservation(ec2: &aws_sdk_ec2::Client, reservation: &str) -> Result<Vec<InstanceId>, CallError> {
    let call = ec2
        .describe_instances()
        .filters(filter("capacity-reservation-id", &[reservation]))
        .filters(filter("instance-state-name", &["pending", "running", "stopping"]));
    Ok(in_pages(call).await?.into_iter().map(|instance| instance.id).collect())
}

/// Reads the scheduled events of `instance`. If `instance` is `None`, reads those of all running instances.
pub(crate) async fn scheduled_events(
    ec2: &aws_sdk_ec2::Client,
    instance: Option<&InstanceId>,
) -> Result<Vec<ScheduledEvent>, CallError> {
    let call = ec2.describe_instance_status().filters(filter("event.code", &EVENT_CODES));
    let call = match instance {
        Some(id) => call.filters(filter("instance-id", &[id.as_str()])),
        None => call,
    };
    let mut statuses = call.into_paginator().items().send();
    let mut found = Vec::new();
    while let Some(status) = statuses.next().await {
        let status = status.map_err(|error| CallError::new(DESCRIBE_STATUS, error))?;
        let Some(instance) = status.instance_id.as_deref().and_then(InstanceId::parse) else { continue };
        found.extend(status.events.into_iter().flatten().filter_map(|event| scheduled_event(&instance, event)));
    }
    Ok(found)
}

pub(crate) async fn instances(
    ec2: &aws_sdk_ec2::Client,
    events: &[ScheduledEvent],
) -> Result<Vec<Instance>, CallError> {
    let mut found = Vec::new();
    for some in events.chunks(MOST_VALUES) {
        let ids: Vec<&str> = some.iter().map(|event| event.instance.as_str()).collect();
        found.extend(in_pages(ec2.describe_instances().filters(filter("instance-id", &ids))).await?);
    }
    Ok(found)
}

/// Finds the running instances of the named nodes. Leaves out instances that have none of the tag keys.
pub async fn tagged(ec2: &aws_sdk_ec2::Client, tags: &[&str], nodes: &[&str]) -> Result<Vec<Instance>, CallError> {
    let (ids, dns_names): (Vec<&str>, Vec<&str>) = nodes.iter().partition(|name| name.starts_with("i-"));
    let ids: Vec<&str> = ids.into_iter().filter_map(|name| name.split('.').next()).collect();
    let mut found = Vec::new();
    for (name, values) in [("instance-id", ids), ("private-dns-name", dns_names)] {
        for some in values.chunks(MOST_VALUES) {
            let call = ec2.describe_instances().filters(filter("tag-key", tags)).filters(filter(name, some));
            found.extend(in_pages(call.filters(filter("instance-state-name", &["running"]))).await?);
        }
    }
    Ok(found)
}

async fn in_pages(call: DescribeInstancesFluentBuilder) -> Result<Vec<Instance>, CallError> {
    let mut pages = call.into_paginator().send();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| CallError::new(DESCRIBE, error))?;
        let described = page.reservations.into_iter().flatten().flat_map(|r| r.instances.unwrap_or_default());
        found.extend(described.filter_map(|one| Some(from_ec2(InstanceId::parse(one.instance_id.as_deref()?)?, one))));
    }
    Ok(found)
}

fn scheduled_event(instance: &InstanceId, event: InstanceStatusEvent) -> Option<ScheduledEvent> {
    Some(ScheduledEvent {
        id: event.instance_event_id?,
        instance: instance.clone(),
        code: event.code?.as_str().to_owned(),
        description: event.description.unwrap_or_default(),
        starts: Timestamp::from_second(event.not_before?.secs()).ok()?,
    })
}

fn filter(name: &str, values: &[&str]) -> Filter {
    Filter::builder().name(name).set_values(Some(values.iter().map(|v| (*v).to_owned()).collect())).build()
}

fn from_ec2(id: InstanceId, instance: Ec2Instance) -> Instance {
    let tags = instance.tags.into_iter().flatten();
    let state = match instance.state.and_then(|state| state.name) {
        Some(InstanceStateName::Stopping | InstanceStateName::ShuttingDown) => InstanceState::GoingDown,
        Some(InstanceStateName::Stopped | InstanceStateName::Terminated) => InstanceState::Down,
        _ => InstanceState::Up,
    };
    Instance {
        id,
        zone: instance.placement.and_then(|placement| placement.availability_zone).unwrap_or_default(),
        private_dns_name: instance.private_dns_name.filter(|name| !name.is_empty()),
        state,
        type_name: instance.instance_type.map(|name| name.as_str().to_owned()),
        spot_request: instance.spot_instance_request_id.filter(|id| !id.is_empty()),
        tags: tags.filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default()))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use aws_sdk_ec2::config::retry::RetryConfig;

    use super::*;
    use crate::doubles::aws::{AwsDouble, instances};
    use crate::test_support::aws::{described, ec2_error};
    use crate::test_support::context::TestContext;
    use crate::test_support::instance_id;
    use crate::test_support::script::{Expected, call};

    /// Describes an instance at an EC2 with these delays in seconds, 0 for a broken connection: whether it succeeds, and after how
    /// many seconds.
    async fn answered<const N: usize>(takes: [u64; N]) -> (bool, u64) {
        let calls = Arc::new(AtomicUsize::new(0));
        let aws = AwsDouble::new(move |_| {
            let number = calls.fetch_add(1, Ordering::Relaxed);
            async move {
                sleep(Duration::from_secs(takes[number])).await;
                let running = "<instanceState><name>running</name></instanceState>";
                let answer = instances(&format!("<item><instanceId>{}</instanceId>{running}</item>", instance_id()));
                (takes[number] > 0).then_some((200, answer))
            }
        });
        let config = config::Builder::new().behavior_version_latest().allow_no_auth();
        let config = config.timeout_config(spillway_startup::aws::timeouts()).retry_config(RetryConfig::disabled());
        let region = config::Region::new("us-east-1");
        let ec2 = aws_sdk_ec2::Client::from_conf(config.region(region).http_client(aws).build());
        let began = Instant::now();
        let end = began + Duration::from_secs(120);
        let described = describe(&ec2, &instance_id(), end, &Notify::new(), |_| false).await;
        (described.is_ok_and(|described| described.is_some()), began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn timeout_is_5_s_and_doubles_after_each_timeout() {
        assert_eq!(answered([1]).await, (true, 1));
        let (is_known, seconds) = answered([9_999, 1]).await;
        assert!(is_known && (6..=7).contains(&seconds), "{seconds}");
        let (is_known, seconds) = answered([12, 12, 12]).await;
        assert!(is_known && (27..=29).contains(&seconds), "5, 10 and 12 s, and pauses: {seconds}");
        let (is_known, seconds) = answered([0, 0, 0, 9_999, 1]).await;
        assert!(is_known && (6..=7).contains(&seconds), "5 and 1 s, and pauses: {seconds}");
    }

    /// Describes an instance: whether EC2 has it, and after how many seconds the answer stands.
    async fn described_by(aws: impl IntoIterator<Item = Expected>, is_behind: bool) -> (bool, u64) {
        let (context, began) = (TestContext::new(&[], [], aws), Instant::now());
        let end = began + Duration::from_secs(120);
        let described = describe(&context.ec2, &instance_id(), end, &Notify::new(), |_| is_behind).await.unwrap();
        (described.is_some(), began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn outdated_answer_is_accepted_after_30_s() {
        assert_eq!(described_by([described("stopped", &[]).repeated()], true).await, (true, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn throttled_call_is_repeated_in_the_other_form() {
        let throttled = |call: Expected| call.says(503, ec2_error("RequestLimitExceeded", "Request limit exceeded."));
        let filtered = || call("DescribeInstances").with("instance-state-name").with("InstanceId.1=");
        let id_alone = || call("DescribeInstances").without("Filter").with("InstanceId.1=");
        let aws = [throttled(filtered()), throttled(id_alone()), throttled(filtered()), described("running", &[])];
        assert!(described_by(aws, false).await.0);
        // Other failures keep the form.
        let failed = filtered().says(500, ec2_error("InternalError", "An internal error has occurred"));
        assert!(described_by([failed, described("running", &[]).with("instance-state-name")], false).await.0);
    }

    #[tokio::test(start_paused = true)]
    async fn names_beyond_200_take_a_second_call() {
        let names = |count: usize| {
            let call = call("DescribeInstances").with(format!("Filter.2.Value.{count}="));
            call.without(format!("Filter.2.Value.{}=", count + 1)).says(200, instances(""))
        };
        let context = TestContext::new(&[], [], [names(200), names(1)]);
        assert_eq!(tagged(&context.ec2, &["drain"], &["i-1"; 201]).await.unwrap(), []);
    }
}

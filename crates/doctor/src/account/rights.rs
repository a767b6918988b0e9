//! Checks the rights of the function's role by AWS calls that change nothing.
//!
//! AWS checks the right before AWS looks for the object of a call. Therefore each of these responses proves the right:
//! * A dry run succeeds in Lambda, and fails with `DryRunOperation` in EC2.
//! * A call about a missing cluster, group, hook or schedule fails as invalid or not found. Lifecycle actions need a real group.
//! * `PutEvents` succeeds, but rejects its only entry, whose detail is not JSON.

use aws_sdk_autoscaling::types::Filter;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_scheduler::types::{FlexibleTimeWindow, FlexibleTimeWindowMode, Target};
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::http::Response;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use futures_util::future::LocalBoxFuture;
use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;
use spillway_drainer::Context;
use spillway_drainer::aws::{self, CallError, CallErrorKind};
use spillway_eks::DescribeError;
use spillway_retry::Transient as _;
use spillway_settings::{LoadBalancers, Schedules};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use super::groups::Group;
use super::unqualified;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, REVERT_DRIFT, Severity};
use crate::retry_end;

const ID: CheckId = CheckId::AwsRights;
const NOT_FOUND: &str = "ResourceNotFoundException";
/// Error code of Auto Scaling and EventBridge for an invalid request.
const INVALID: &str = "ValidationError";
/// Name that no cluster, group, hook or schedule has.
const UNKNOWN: &str = "spillway-doctor-asks-for-nothing";
const UNKNOWN_INSTANCE: &str = "i-00000000000000000";

struct AwsRight<'a> {
    /// IAM action, such as `sns:Publish`.
    action: &'static str,
    without_it: &'static str,
    probe: Probe<'a>,
}

/// Calls an AWS action in a way that changes nothing. Returns `Ok` if the response proves that the role may call the action.
type Probe<'a> = Box<dyn Fn() -> LocalBoxFuture<'a, Result<(), CallError>> + 'a>;

/// Creates a check for one right. The role has the right if `call` succeeds, or if its error code is `code_if_allowed`.
fn right<'a, T, E, F>(
    action: &'static str,
    without_it: &'static str,
    code_if_allowed: &'static str,
    call: impl Fn() -> F + 'a,
) -> AwsRight<'a>
where
    F: Future<Output = Result<T, SdkError<E, Response>>> + 'a,
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let probe = move || -> LocalBoxFuture<'a, _> {
        let called = call();
        Box::pin(async move {
            match called.await {
                Ok(_) => Ok(()),
                Err(error) if error.as_service_error().and_then(E::code) == Some(code_if_allowed) => Ok(()),
                Err(error) => Err(CallError::new(action, error)),
            }
        })
    };
    AwsRight { action, without_it, probe: Box::new(probe) }
}

/// Checks all rights that a drain needs. If `group` is `None`, the rights to lifecycle actions are not checked.
pub(super) async fn run_check(
    context: &Context,
    group: Option<&Group>,
    invocation: &Invocation,
    end: Instant,
) -> Check {
    let mut rights = of_every_drain(context);
    if let Some(group) = group {
        rights.extend(of_actions(context, &group.name));
    }
    if let Some(schedules) = &context.settings.schedules {
        rights.extend(of_schedules(context.schedules(), schedules, unqualified(&invocation.function)));
    }
    rights.extend(of_settings(context));

    let mut findings = Vec::new();
    for AwsRight { action, without_it, probe } in &rights {
        if let Err(error) = aws::until(action, retry_end(end), probe).await {
            findings.push(finding(without_it, &error));
        }
    }
    let (count, allowed) = (rights.len(), rights.len() - findings.len());
    findings.extend(context.settings.schedules.is_none().then(no_schedules));
    let of_group =
        if group.is_none() { "; calls for lifecycle hooks were not tried, because they need a group" } else { "" };
    Check::made(ID, format!("{allowed} of {count} calls to AWS are allowed{of_group}"), findings)
}

fn no_schedules() -> Finding {
    let what = "is missing: later drains cannot be scheduled, and maintenance is not drained";
    let to_do = format!("the template sets it: {REVERT_DRIFT}");
    Finding::new(FindingId::NoSchedules, Severity::Fail, "the setting SPILLWAY_SCHEDULES", what, to_do)
}

fn of_every_drain(context: &Context) -> Vec<AwsRight<'_>> {
    let Context { ec2, autoscaling, eventbridge, itself, access, .. } = context;
    vec![
        right("ec2:DescribeInstances", "no notice can be handled", "DryRunOperation", || {
            ec2.describe_instances().dry_run(true).send()
        }),
        right(
            "ec2:DescribeInstanceStatus",
            "scheduled maintenance without a notice is not drained",
            "DryRunOperation",
            || ec2.describe_instance_status().dry_run(true).send(),
        ),
        right("eks:DescribeCluster", "no cluster can be reached", NOT_FOUND, || async {
            match access.clusters.get(&ClusterName::new(UNKNOWN)).await {
                Err(DescribeError::Call(_, error)) => Err(*error),
                Ok(_) | Err(DescribeError::Incomplete(..)) => Ok(()),
            }
        }),
        right(
            "autoscaling:DescribeLifecycleHooks",
            "hooks are assumed to have a timeout of 30 s, and get more heartbeats than necessary",
            INVALID,
            || autoscaling.describe_lifecycle_hooks().auto_scaling_group_name(UNKNOWN).send(),
        ),
        right("events:PutEvents", "only the log has the receipts", INVALID, || {
            let entry = PutEventsRequestEntry::builder().source(spillway_notice::SOURCE).detail_type(UNKNOWN);
            eventbridge.put_events().entries(entry.detail("{").build()).send()
        }),
        right(
            "lambda:InvokeFunction",
            "a drain ends after 15 minutes even if pods are left, and a notice for several instances is not handled",
            NOT_FOUND,
            || itself.rehearse_invoke(),
        ),
    ]
}

fn of_actions<'a>(context: &'a Context, group: &'a str) -> [AwsRight<'a>; 2] {
    let autoscaling = &context.autoscaling;
    [
        right(
            "autoscaling:CompleteLifecycleAction",
            "each instance waits at its hook until the timeout",
            INVALID,
            move || {
                let call = autoscaling.complete_lifecycle_action().auto_scaling_group_name(group);
                let call = call.lifecycle_hook_name(UNKNOWN).instance_id(UNKNOWN_INSTANCE);
                call.lifecycle_action_result("CONTINUE").send()
            },
        ),
        right(
            "autoscaling:RecordLifecycleActionHeartbeat",
            "hooks cannot be held: a drain that takes longer than the timeout is cut off",
            INVALID,
            move || {
                let call = autoscaling.record_lifecycle_action_heartbeat().auto_scaling_group_name(group);
                call.lifecycle_hook_name(UNKNOWN).instance_id(UNKNOWN_INSTANCE).send()
            },
        ),
    ]
}

/// Returns the rights to EventBridge schedules. Omits `CreateSchedule`, because a test call would create a schedule.
fn of_schedules<'a>(
    client: &'a aws_sdk_scheduler::Client,
    Schedules { group, role_arn, .. }: &'a Schedules,
    function: &'a str,
) -> [AwsRight<'a>; 4] {
    let not_compared = "schedules are not compared with the scheduled maintenance";
    [
        right("scheduler:ListSchedules", not_compared, NOT_FOUND, move || {
            client.list_schedules().group_name(group).max_results(1).send()
        }),
        right("scheduler:GetSchedule", not_compared, NOT_FOUND, move || {
            client.get_schedule().name(UNKNOWN).group_name(group).send()
        }),
        right("scheduler:UpdateSchedule", "postponed maintenance is drained at its old time", NOT_FOUND, move || {
            let at_once = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off).build();
            let target = Target::builder().arn(function).role_arn(role_arn).input("{}").build();
            let call = client.update_schedule().name(UNKNOWN).group_name(group);
            let call = call.schedule_expression("at(2100-01-01T00:00:00)");
            let call = call.flexible_time_window(at_once.expect("it has a mode"));
            call.target(target.expect("it has an ARN and a role")).send()
        }),
        right("scheduler:DeleteSchedule", "cancelled maintenance is drained anyway", NOT_FOUND, move || {
            client.delete_schedule().name(UNKNOWN).group_name(group).send()
        }),
    ]
}

/// Returns the rights that only some settings require. Omits rights whose test needs an existing target group or instance.
fn of_settings(context: &Context) -> Vec<AwsRight<'_>> {
    let Context { ec2, autoscaling, load_balancing, settings, .. } = context;
    let mut rights = Vec::new();
    if settings.managed_tag.is_some() {
        let without_it = "notices fail, because the tags of Auto Scaling groups are unknown";
        rights.push(right("autoscaling:DescribeTags", without_it, INVALID, || {
            let group = Filter::builder().name("auto-scaling-group").values(UNKNOWN).build();
            autoscaling.describe_tags().filters(group).send()
        }));
    }
    if settings.replace.is_on() {
        let without_it = "no instance is replaced at its notice";
        rights.push(right("ec2:DescribeSpotInstanceRequests", without_it, "DryRunOperation", || {
            ec2.describe_spot_instance_requests().dry_run(true).send()
        }));
        rights.push(right("autoscaling:DescribeScalingActivities", without_it, INVALID, || {
            autoscaling.describe_scaling_activities().auto_scaling_group_name(UNKNOWN).max_records(1).send()
        }));
    }
    if settings.load_balancers == LoadBalancers::Wait {
        let (action, without_it) =
            ("elasticloadbalancing:DescribeTargetGroups", "drains do not wait for load balancers");
        rights.push(right(action, without_it, "TargetGroupNotFound", || {
            load_balancing.describe_target_groups().names(UNKNOWN).send()
        }));
    }
    rights
}

fn finding(without_it: &str, error: &CallError) -> Finding {
    if error.kind == CallErrorKind::Denied {
        let what = format!("is denied ({}): {without_it}", error.answer());
        let to_do = format!(
            "find what denies it: a changed policy of the role ({REVERT_DRIFT}), a permissions boundary, a service control \
             policy, or the policy of a VPC endpoint"
        );
        return Finding::new(FindingId::AwsRightMissing, Severity::Fail, error.action, what, to_do);
    }
    let to_do =
        "run the doctor again; if the finding persists, check the way from the function's subnets to the AWS APIs";
    let what = format!("cannot be tried ({}). Without the right {without_it}", chain(error));
    // AWS usually checks the right first. A lasting error other than a denial is therefore only a warning.
    let severity = if error.is_transient() { Severity::Unknown } else { Severity::Warn };
    Finding::new(FindingId::AwsRightUnknown, severity, error.action, what, to_do)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use jiff::Timestamp;
    use serde_json::json;
    use spillway_core::clock::Clock;
    use spillway_core::instance::ManagedBy;
    use spillway_core::replacement::GroupState;
    use spillway_drainer::doubles::aws::{ec2_error, json_error, query_error};
    use spillway_drainer::doubles::script::call;
    use spillway_drainer::doubles::scripted::TestContext;

    use super::*;

    fn invocation() -> Invocation {
        let mut invocation = Invocation::until(Timestamp::MAX, "r-1", Clock::starting_at(Timestamp::UNIX_EPOCH));
        "arn:aws:lambda:us-east-1:123456789012:function:drain".clone_into(&mut invocation.function);
        invocation
    }

    #[tokio::test(start_paused = true)]
    async fn probes_have_no_effect_and_only_denials_are_findings() {
        let invalid = || query_error("ValidationError", "there is none of that name");
        let dry_run = || ec2_error("DryRunOperation", "m");
        let no_entry = json!({"FailedEntryCount": 1, "Entries": [{"ErrorCode": "MalformedDetail"}]});
        let aws = [
            call("DescribeInstances").with("DryRun=true").says(412, dry_run()),
            call("DescribeInstanceStatus").with("DryRun=true").says(412, dry_run()),
            call("DescribeLifecycleHooks").with(UNKNOWN).says(400, invalid()),
            call("PutEvents").with(UNKNOWN).says(200, no_entry),
            call("POST /2015-03-31/functions/drain/invocations").with("{}").says(204, ""),
            call("CompleteLifecycleAction").with("AutoScalingGroupName=workers").with(UNKNOWN).says(400, invalid()),
            call("RecordLifecycleActionHeartbeat").with(UNKNOWN).says(403, query_error("AccessDenied", "no")),
            call("GET /schedules").says(200, json!({"Schedules": []})),
            call(format!("GET /schedules/{UNKNOWN}")).says(404, json_error(NOT_FOUND)),
            call(format!("PUT /schedules/{UNKNOWN}")).with("at(2100").says(404, json_error(NOT_FOUND)),
            call(format!("DELETE /schedules/{UNKNOWN}")).says(404, json_error(NOT_FOUND)),
        ];
        let context = TestContext::new(&[], [], aws);
        let group = Group {
            name: "workers".to_owned(),
            cluster: ClusterName::new("prod"),
            managed_by: ManagedBy::SelfManaged,
            tags: BTreeMap::new(),
            keeps_abandoned: false,
            kept: Vec::new(),
            state: GroupState::default(),
            hooks: Vec::new(),
        };
        let end = Instant::now() + Duration::from_secs(60);
        let check = run_check(&context, Some(&group), &invocation(), end).await;
        let missing: Vec<_> = check.findings.iter().map(|finding| (finding.id, finding.object.as_str())).collect();
        assert_eq!(missing, [(FindingId::AwsRightMissing, "autoscaling:RecordLifecycleActionHeartbeat")]);
        assert_eq!(check.what, "11 of 12 calls to AWS are allowed");
    }

    #[test]
    fn denial_fails_transient_error_is_unknown_other_warns() {
        let found = |code: &str| {
            finding("maintenance is late", &CallError::answered("scheduler:UpdateSchedule", code, "no", None))
        };
        let denied = found("AccessDenied");
        assert_eq!((denied.id, denied.severity), (FindingId::AwsRightMissing, Severity::Fail));
        for code in ["ThrottlingException", "InternalFailure"] {
            assert_eq!((found(code).id, found(code).severity), (FindingId::AwsRightUnknown, Severity::Unknown));
        }
        assert_eq!(found("ValidationException").severity, Severity::Warn);
    }
}

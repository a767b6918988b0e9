//! The AWS rights: each call of a drain, made so that it changes nothing.
//!
//! AWS looks at the right before it looks for what a call is about, so an answer that only the one who has the right
//! gets is as good as a success:
//! * EC2 answers a dry run by `DryRunOperation`;
//! * of a cluster and of schedules that nobody has made it is said that they are not found;
//! * of a lifecycle action that nobody waits for likewise. It is asked of a real group: the right is on the group's
//!   ARN, which a group that does not exist has not, so that Auto Scaling tells anybody that it is not there;
//! * Lambda answers a dry run by nothing at all;
//! * `PutEvents` takes a call and refuses its entries one by one: here the only one, whose detail is no JSON.
//!
//! What cannot be tried without a change is not tried, and the report says so.

use aws_sdk_autoscaling::types::Filter;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_scheduler::types::{FlexibleTimeWindow, FlexibleTimeWindowMode, Target};
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::http::Response;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use futures_util::future::LocalBoxFuture;
use jiff::{SignedDuration, Timestamp};
use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;
use spillway_drainer::Context;
use spillway_drainer::aws::{self, CallError, CallErrorKind};
use spillway_eks::DescribeError;
use spillway_retry::Transient as _;
use spillway_settings::{LoadBalancers, Schedules, Settings};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use super::groups::Group;
use super::unqualified;
use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, PUT_BACK, Severity};

const ID: CheckId = CheckId::AwsRights;
const COMPLETE: &str = "autoscaling:CompleteLifecycleAction";
const HEARTBEAT: &str = "autoscaling:RecordLifecycleActionHeartbeat";
const INVOKE: &str = "lambda:InvokeFunction";
const UPDATE_SCHEDULE: &str = "scheduler:UpdateSchedule";
const DELETE_SCHEDULE: &str = "scheduler:DeleteSchedule";
const NOT_FOUND: &str = "ResourceNotFoundException";
/// Query services have one code for whatever is wrong with a request.
const INVALID: &str = "ValidationError";
/// The name of a cluster, group, hook or schedule that nobody has.
const UNKNOWN: &str = "spillway-doctor-asks-for-nothing";
const UNKNOWN_INSTANCE: &str = "i-00000000000000000";

/// The right to make one call of a drain.
struct Right<'a> {
    /// As IAM writes it.
    action: &'static str,
    /// What happens to a drain that lacks the right.
    without_it: &'static str,
    probe: Probe<'a>,
}

/// Makes the call of an action once, without effect. Fails if its answer does not show that the role has the right.
type Probe<'a> = Box<dyn Fn(&'static str) -> LocalBoxFuture<'a, Result<(), CallError>> + 'a>;

/// Makes that call, which is allowed if it succeeds, or fails with a code that only a role with the right gets.
fn probe<'a, T, E, F>(code_if_allowed: &'static str, call: impl Fn() -> F + 'a) -> Probe<'a>
where
    F: Future<Output = Result<T, SdkError<E, Response>>> + 'a,
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    Box::new(move |action| {
        let called = call();
        Box::pin(async move {
            match called.await {
                Ok(_) => Ok(()),
                Err(error) if error.as_service_error().and_then(E::code) == Some(code_if_allowed) => Ok(()),
                Err(error) => Err(CallError::new(action, error)),
            }
        })
    })
}

/// Tries each call of a drain, those of lifecycle actions on that group.
pub(super) async fn look(context: &Context, group: Option<&Group>, invocation: &Invocation, end: Instant) -> Check {
    let settings = &context.settings;
    let mut not_tried = vec!["scheduler:CreateSchedule", "iam:PassRole"];
    let mut rights = of_nodes(context);
    match group {
        Some(group) => rights.extend(of_actions(&context.autoscaling, &group.name)),
        None => not_tried.extend([COMPLETE, HEARTBEAT]),
    }
    rights.extend(of_every_end(context));
    match &settings.schedules {
        Some(schedules) => rights.extend(of_schedules(context.schedules(), schedules, invocation)),
        None => not_tried.extend([UPDATE_SCHEDULE, DELETE_SCHEDULE]),
    }
    if settings.load_balancers == LoadBalancers::Wait {
        rights.push(of_load_balancers(&context.load_balancing));
        not_tried.extend(["elasticloadbalancing:DescribeTags", "elasticloadbalancing:DescribeTargetHealth"]);
    }

    let mut findings = Vec::new();
    for Right { action, without_it, probe } in &rights {
        if let Err(error) = aws::until(action, asked_until(end), || probe(action)).await {
            findings.push(finding(without_it, &error, settings, invocation));
        }
    }
    let (count, let_in) = (rights.len(), rights.len() - findings.len());
    findings.extend(settings.schedules.is_none().then(no_schedules));
    let what = format!(
        "{let_in} of {count} AWS calls that a drain makes are allowed; not tried, because there is nothing to try it on \
         or it would change something: {}",
        not_tried.join(", ")
    );
    Check::made(ID, what, findings)
}

fn no_schedules() -> Finding {
    let what = "is missing, without which nothing can be done at a later time: maintenance is not drained";
    let to_do = format!("the template sets it: {PUT_BACK}");
    Finding::new(FindingId::NoSchedules, Severity::Fail, "the setting SPILLWAY_SCHEDULES", what, to_do)
}

/// The rights to find an instance's cluster, its hook and its tags.
fn of_nodes(context: &Context) -> Vec<Right<'_>> {
    let Context { ec2, autoscaling, access, settings, .. } = context;
    let mut rights = vec![
        Right {
            action: "ec2:DescribeInstances",
            without_it: "no notice can be worked on",
            probe: probe("DryRunOperation", || ec2.describe_instances().dry_run(true).send()),
        },
        Right {
            action: "ec2:DescribeInstanceStatus",
            without_it: "scheduled maintenance that no notice has brought is not drained for",
            probe: probe("DryRunOperation", || ec2.describe_instance_status().dry_run(true).send()),
        },
        Right {
            action: "eks:DescribeCluster",
            without_it: "no cluster can be reached",
            probe: probe(NOT_FOUND, || async {
                match access.clusters.get(&ClusterName::new(UNKNOWN)).await {
                    Err(DescribeError::Call(_, error)) => Err(*error),
                    Ok(_) | Err(DescribeError::Incomplete(..)) => Ok(()),
                }
            }),
        },
        Right {
            action: "autoscaling:DescribeLifecycleHooks",
            without_it: "a hook is calculated to wait for 30 s only, and gets more heartbeats than it needs",
            probe: probe(INVALID, || autoscaling.describe_lifecycle_hooks().auto_scaling_group_name(UNKNOWN).send()),
        },
    ];
    if settings.managed_tag.is_some() {
        rights.push(Right {
            action: "autoscaling:DescribeTags",
            without_it: "it cannot be told whether an instance's group has the managed tag, and its notices fail",
            probe: probe(INVALID, || {
                let group = Filter::builder().name("auto-scaling-group").values(UNKNOWN).build();
                autoscaling.describe_tags().filters(group).send()
            }),
        });
    }
    rights
}

/// The rights to hold and to complete the lifecycle actions of a group.
fn of_actions<'a>(autoscaling: &'a aws_sdk_autoscaling::Client, group: &'a str) -> [Right<'a>; 2] {
    [
        Right {
            action: COMPLETE,
            without_it: "each instance hangs at its hook until the hook's timeout",
            probe: probe(INVALID, move || {
                let call = autoscaling.complete_lifecycle_action().auto_scaling_group_name(group);
                let call = call.lifecycle_hook_name(UNKNOWN).instance_id(UNKNOWN_INSTANCE);
                call.lifecycle_action_result("CONTINUE").send()
            }),
        },
        Right {
            action: HEARTBEAT,
            without_it: "a hook cannot be held: a drain that takes longer than its timeout is cut off",
            probe: probe(INVALID, move || {
                let call = autoscaling.record_lifecycle_action_heartbeat().auto_scaling_group_name(group);
                call.lifecycle_hook_name(UNKNOWN).instance_id(UNKNOWN_INSTANCE).send()
            }),
        },
    ]
}

/// The rights to tell others of a drain, and to go on with it in another invocation.
fn of_every_end(context: &Context) -> [Right<'_>; 2] {
    [
        Right {
            action: "events:PutEvents",
            without_it: "nobody is told of drains but by the log",
            probe: probe(INVALID, || {
                let entry = PutEventsRequestEntry::builder().source(spillway_notice::SOURCE).detail_type(UNKNOWN);
                context.eventbridge.put_events().entries(entry.detail("{").build()).send()
            }),
        },
        Right {
            action: INVOKE,
            without_it: "a drain ends after 15 minutes, finished or not, and a notice of several instances is worked on for \
                         none",
            probe: probe(NOT_FOUND, || context.itself.ask()),
        },
    ]
}

/// The rights to look at, to move and to delete the schedules of maintenance.
fn of_schedules<'a>(
    client: &'a aws_sdk_scheduler::Client,
    schedules: &'a Schedules,
    invocation: &'a Invocation,
) -> [Right<'a>; 4] {
    let not_compared = "scheduled maintenance is not compared with what is scheduled for it";
    [
        Right {
            action: "scheduler:ListSchedules",
            without_it: not_compared,
            probe: probe(NOT_FOUND, move || client.list_schedules().group_name(&schedules.group).max_results(1).send()),
        },
        Right {
            action: "scheduler:GetSchedule",
            without_it: not_compared,
            probe: probe(NOT_FOUND, move || client.get_schedule().name(UNKNOWN).group_name(&schedules.group).send()),
        },
        Right {
            action: UPDATE_SCHEDULE,
            without_it: "maintenance that AWS puts off is drained at its old time",
            probe: probe(NOT_FOUND, move || {
                let in_an_hour = invocation.clock.now().saturating_add(SignedDuration::from_hours(1));
                let at = in_an_hour.unwrap_or(Timestamp::MAX).strftime("at(%Y-%m-%dT%H:%M:%S)");
                let at_once = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off).build();
                let target = Target::builder().arn(unqualified(&invocation.function)).role_arn(&schedules.role_arn);
                let target = target.input("{}").build().expect("it has an ARN and a role");
                let call = client.update_schedule().name(UNKNOWN).group_name(&schedules.group);
                let call = call.schedule_expression(at.to_string());
                let call = call.flexible_time_window(at_once.expect("it has a mode"));
                call.target(target).send()
            }),
        },
        Right {
            action: DELETE_SCHEDULE,
            without_it: "what was scheduled for maintenance that AWS calls off is done all the same",
            probe: probe(NOT_FOUND, move || client.delete_schedule().name(UNKNOWN).group_name(&schedules.group).send()),
        },
    ]
}

/// The right to find the target groups of a cluster's load balancers. To read their tags and targets takes a group.
fn of_load_balancers(load_balancing: &aws_sdk_elasticloadbalancingv2::Client) -> Right<'_> {
    Right {
        action: "elasticloadbalancing:DescribeTargetGroups",
        without_it: "no load balancer is waited for",
        probe: probe("TargetGroupNotFound", || load_balancing.describe_target_groups().names(UNKNOWN).send()),
    }
}

/// The finding of a call that was not seen to be allowed.
fn finding(without_it: &str, error: &CallError, settings: &Settings, invocation: &Invocation) -> Finding {
    let (function, region) = (&invocation.function, &invocation.home.region);
    if error.kind != CallErrorKind::Denied {
        let to_do = "run the doctor again; if it stays so, see whether the function gets to AWS' APIs from its subnets";
        let what = format!("cannot be tried: {}. Without it {without_it}", chain(error));
        // An answer that is no denial was most likely given after the right had been looked at.
        let severity = if error.is_transient() { Severity::Unknown } else { Severity::Warn };
        return Finding::new(FindingId::AwsRightUnknown, severity, error.action, what, to_do);
    }
    let policy = policy(error.action, settings);
    let to_do = format!(
        "the role has the right in its policy {policy}. If it is gone, {PUT_BACK}; if it is there, a permissions boundary, a \
         service control policy or the policy of a VPC endpoint takes it away"
    );
    let what = format!("is denied, so that {without_it}: {}", error.answer());
    // IAM's simulator would have to be told the resource and the conditions of each call, and denies whatever lacks them.
    let command = format!(
        "aws iam get-role-policy --policy-name {policy} --role-name \"$(aws lambda get-function-configuration \
         --function-name {function} --region {region} --query Role --output text | sed 's|.*/||')\""
    );
    Finding::new(FindingId::AwsRightMissing, Severity::Fail, error.action, what, to_do).with_command(command)
}

/// The policy of the role that has the right.
fn policy(action: &str, settings: &Settings) -> &'static str {
    match action {
        // One that names the function that names the role.
        INVOKE => "invoke",
        COMPLETE | HEARTBEAT if settings.hook_group_tag.is_some() => "hooks-of-tagged-groups",
        COMPLETE | HEARTBEAT => "hooks",
        _ => "drain",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde_json::json;
    use spillway_core::clock::Clock;
    use spillway_core::instance::ManagedBy;
    use spillway_core::test_support::settings;
    use spillway_drainer::doubles::aws::{ec2_error, json_error, query_error};
    use spillway_drainer::doubles::script::call;
    use spillway_drainer::doubles::scripted::TestContext;

    use super::*;

    fn invocation() -> Invocation {
        let mut invocation = Invocation::until(Timestamp::MAX, "r-1", Clock::starting_at(Timestamp::UNIX_EPOCH));
        "arn:aws:lambda:us-east-1:123456789012:function:drain".clone_into(&mut invocation.function);
        "us-east-1".clone_into(&mut invocation.home.region);
        invocation
    }

    #[tokio::test(start_paused = true)]
    async fn each_call_is_made_without_effect_and_only_a_denial_is_a_missing_right() {
        let invalid = || query_error("ValidationError", "there is none of that name");
        let dry_run = || ec2_error("DryRunOperation", "m");
        let no_entry = json!({"FailedEntryCount": 1, "Entries": [{"ErrorCode": "MalformedDetail"}]});
        let in_an_hour = "\"ScheduleExpression\":\"at(1970-01-01T01:00:00)\"";
        let aws = [
            call("DescribeInstances").with("DryRun=true").says(412, dry_run()),
            call("DescribeInstanceStatus").with("DryRun=true").says(412, dry_run()),
            call("DescribeLifecycleHooks").with(UNKNOWN).says(400, invalid()),
            call("CompleteLifecycleAction").with("AutoScalingGroupName=workers").with(UNKNOWN).says(400, invalid()),
            call("RecordLifecycleActionHeartbeat").with(UNKNOWN).says(403, query_error("AccessDenied", "no")),
            call("PutEvents").with(UNKNOWN).says(200, no_entry),
            call("POST /2015-03-31/functions/drain/invocations").with("{}").says(204, ""),
            call("GET /schedules").says(200, json!({"Schedules": []})),
            call(format!("GET /schedules/{UNKNOWN}")).says(404, json_error(NOT_FOUND)),
            call(format!("PUT /schedules/{UNKNOWN}")).with(in_an_hour).says(404, json_error(NOT_FOUND)),
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
            hooks: Vec::new(),
        };
        let end = Instant::now() + Duration::from_secs(60);
        let check = look(&context, Some(&group), &invocation(), end).await;
        let missing: Vec<_> = check.findings.iter().map(|finding| (finding.id, finding.object.as_str())).collect();
        assert_eq!(missing, [(FindingId::AwsRightMissing, HEARTBEAT)]);
        assert_eq!(
            check.what,
            "11 of 12 AWS calls that a drain makes are allowed; not tried, because there is nothing to try it on or it would \
             change something: scheduler:CreateSchedule, iam:PassRole"
        );
    }

    fn found(kind: CallErrorKind) -> Finding {
        let error = match kind {
            CallErrorKind::Denied => CallError::answered(UPDATE_SCHEDULE, "AccessDenied", "no", None),
            CallErrorKind::Unreachable => CallError::unanswered(UPDATE_SCHEDULE, "no"),
            CallErrorKind::Throttled => CallError::answered(UPDATE_SCHEDULE, "ThrottlingException", "no", None),
            CallErrorKind::Broken => CallError::answered(UPDATE_SCHEDULE, "InternalFailure", "no", None),
            CallErrorKind::Refused => CallError::answered(UPDATE_SCHEDULE, "ValidationException", "no", None),
        };
        finding("maintenance is late", &error, &settings(&[]), &invocation())
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_denied_a_call_is_shown_the_policy_that_the_template_gives_the_role() {
        let found = found(CallErrorKind::Denied);
        assert_eq!((found.id, found.severity), (FindingId::AwsRightMissing, Severity::Fail));
        assert_eq!(
            found.command.unwrap(),
            "aws iam get-role-policy --policy-name drain --role-name \"$(aws lambda get-function-configuration \
             --function-name arn:aws:lambda:us-east-1:123456789012:function:drain --region us-east-1 --query Role \
             --output text | sed 's|.*/||')\""
        );
        let template = include_str!("../../../../template.yaml");
        assert!(template.contains("        - PolicyName: drain\n"), "the role has a policy of that name");
        for action in [INVOKE, COMPLETE] {
            let named = |variables: &[(&str, &str)]| format!("PolicyName: {}\n", policy(action, &settings(variables)));
            assert!(template.contains(&named(&[])) && template.contains(&named(&[("SPILLWAY_HOOK_GROUP_TAG", "a=b")])));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_call_without_an_answer_nobody_knows_and_an_odd_answer_is_most_likely_that_of_who_is_let_in() {
        for kind in [CallErrorKind::Throttled, CallErrorKind::Unreachable, CallErrorKind::Broken] {
            assert_eq!((found(kind).id, found(kind).severity), (FindingId::AwsRightUnknown, Severity::Unknown));
        }
        assert_eq!(found(CallErrorKind::Refused).severity, Severity::Warn);
    }
}

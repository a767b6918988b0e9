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
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::operation::put_events::{PutEventsError, PutEventsOutput};
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::http::Response;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use spillway_eks::{ClusterName, DescribeError};
use spillway_retry::Transient as _;
use spillway_settings::{LoadBalancers, Settings};
use tokio::time::Instant;

use super::groups::Group;
use crate::aws::itself::INVOKE;
use crate::aws::{self, CallError, CallErrorKind};
use crate::aws::{ec2, target_groups};
use crate::context::Context;
use crate::continuation::schedule::{self, Scheduler};
use crate::failure::DESCRIBE_CLUSTER;
use crate::invocation::Invocation;
use crate::self_test::asked_until;
use crate::self_test::report::{Check, Finding, Severity};
use spillway_startup::logs::chain;

const ID: &str = "aws-rights";
const COMPLETE: &str = "autoscaling:CompleteLifecycleAction";
const HEARTBEAT: &str = "autoscaling:RecordLifecycleActionHeartbeat";
const NOT_FOUND: &str = "ResourceNotFoundException";
/// Query services have one code for whatever is wrong with a request.
const INVALID: &str = "ValidationError";
/// The name of a cluster, group or hook that nobody has.
const NOBODYS: &str = "spillway-doctor-asks-for-nothing";
const NOBODYS_INSTANCE: &str = "i-00000000000000000";

/// A call that was tried: what fails without it, and what came of it.
type Tried = (&'static str, Result<&'static str, CallError>);

/// Tries each call of a drain, those of lifecycle actions on that group.
pub(super) async fn look(context: &Context, group: Option<&Group>, invocation: &Invocation, end: Instant) -> Check {
    let mut not_tried = vec!["scheduler:CreateSchedule", "iam:PassRole"];
    let mut tried = of_nodes(context, end).await;
    match group {
        Some(group) => tried.extend(of_actions(context, &group.name, end).await),
        None => not_tried.extend([COMPLETE, HEARTBEAT]),
    }
    tried.push((
        "nobody is told of drains but by the log",
        allowed("events:PutEvents", INVALID, end, || put_no_json(&context.eventbridge)).await,
    ));
    tried.push((
        "a drain ends after 15 minutes, finished or not, and a notice of several instances is worked on for none",
        allowed(INVOKE, NOT_FOUND, end, || context.itself.ask()).await,
    ));
    match context.settings.schedules {
        Some(_) => tried.extend(of_schedules(&context.scheduler, invocation, end).await),
        None => not_tried.extend([schedule::UPDATE, schedule::DELETE]),
    }

    if context.settings.load_balancers == LoadBalancers::Wait {
        let groups = || context.load_balancing.describe_target_groups().names(NOBODYS).send();
        let without_it = "no load balancer is waited for";
        tried.push((without_it, allowed(target_groups::GROUPS, "TargetGroupNotFound", end, groups).await));
        not_tried.extend([target_groups::TAGS, target_groups::HEALTH]);
    }

    let count = tried.len();
    let settings = &context.settings;
    let mut findings: Vec<_> = tried.into_iter().filter_map(|tried| finding(tried, settings, invocation)).collect();
    let let_in = count - findings.len();
    findings.extend(context.settings.schedules.is_none().then(no_schedules));
    let what = format!(
        "{let_in} of {count} AWS calls that a drain makes are allowed; not tried, because there is nothing to try it on \
         or it would change something: {}",
        not_tried.join(", ")
    );
    Check::made(ID, what, findings)
}

fn no_schedules() -> Finding {
    let what = "is missing, without which nothing can be done at a later time: maintenance is not drained";
    let to_do = "deploy the template, which sets it";
    Finding::new("no-schedules", Severity::Fail, "the setting SPILLWAY_SCHEDULES", what, to_do)
}

async fn of_nodes(context: &Context, end: Instant) -> Vec<Tried> {
    let Context { ec2, autoscaling, access, settings, .. } = context;
    let nobody = ClusterName::new(NOBODYS);
    let cluster = async || match access.clusters.get(&nobody).await {
        Err(DescribeError::Call(_, error)) => Err(*error),
        Ok(_) | Err(DescribeError::Incomplete(..)) => Ok(()),
    };
    let instances = || ec2.describe_instances().dry_run(true).send();
    let hooks = || autoscaling.describe_lifecycle_hooks().auto_scaling_group_name(NOBODYS).send();
    let mut tried = vec![
        ("no notice can be worked on", allowed(ec2::DESCRIBE, "DryRunOperation", end, instances).await),
        ("no cluster can be reached", allowed(DESCRIBE_CLUSTER, NOT_FOUND, end, cluster).await),
        (
            "a hook is reckoned to wait for 30 s only, and gets more heartbeats than it needs",
            allowed("autoscaling:DescribeLifecycleHooks", INVALID, end, hooks).await,
        ),
    ];
    if settings.managed_tag.is_some() {
        let group = Filter::builder().name("auto-scaling-group").values(NOBODYS).build();
        let tags = || autoscaling.describe_tags().filters(group.clone()).send();
        tried.push((
            "it cannot be told whether an instance's group has the managed tag, and its notices fail",
            allowed("autoscaling:DescribeTags", INVALID, end, tags).await,
        ));
    }
    tried
}

async fn of_actions(context: &Context, group: &str, end: Instant) -> [Tried; 2] {
    let autoscaling = &context.autoscaling;
    let complete = || {
        let call = autoscaling.complete_lifecycle_action().auto_scaling_group_name(group);
        call.lifecycle_hook_name(NOBODYS).instance_id(NOBODYS_INSTANCE).lifecycle_action_result("CONTINUE").send()
    };
    let heartbeat = || {
        let call = autoscaling.record_lifecycle_action_heartbeat().auto_scaling_group_name(group);
        call.lifecycle_hook_name(NOBODYS).instance_id(NOBODYS_INSTANCE).send()
    };
    [
        ("each instance hangs at its hook until the hook's timeout", allowed(COMPLETE, INVALID, end, complete).await),
        (
            "a hook cannot be held: a drain that takes longer than its timeout is cut off",
            allowed(HEARTBEAT, INVALID, end, heartbeat).await,
        ),
    ]
}

async fn put_no_json(eventbridge: &Client) -> Result<PutEventsOutput, SdkError<PutEventsError, Response>> {
    let entry =
        PutEventsRequestEntry::builder().source(spillway_notice::SOURCE).detail_type(NOBODYS).detail("{").build();
    eventbridge.put_events().entries(entry).send().await
}

async fn of_schedules(scheduler: &Scheduler, invocation: &Invocation, end: Instant) -> [Tried; 2] {
    let now = invocation.clock.now();
    [
        (
            "maintenance that AWS puts off is drained at its old time",
            allowed(schedule::UPDATE, NOT_FOUND, end, || scheduler.move_nobodys(now)).await,
        ),
        (
            "what was scheduled for maintenance that AWS calls off is done all the same",
            allowed(schedule::DELETE, NOT_FOUND, end, || scheduler.delete_nobodys()).await,
        ),
    ]
}

/// The action, if the call is allowed: it succeeds, or is refused by a code that nobody gets who is denied.
async fn allowed<T, E, F>(
    action: &'static str,
    refusal: &str,
    end: Instant,
    call: impl Fn() -> F,
) -> Result<&'static str, CallError>
where
    F: Future<Output = Result<T, SdkError<E, Response>>>,
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let asked = async || match call().await {
        Ok(_) => Ok(action),
        Err(error) if error.as_service_error().and_then(E::code) == Some(refusal) => Ok(action),
        Err(error) => Err(CallError::new(action, error)),
    };
    aws::until(action, asked_until(end), asked).await
}

fn finding((without, answer): Tried, settings: &Settings, invocation: &Invocation) -> Option<Finding> {
    let error = answer.err()?;
    let (function, region) = (&invocation.function, &invocation.home.region);
    if error.kind != CallErrorKind::Denied {
        let to_do = "run the doctor again; if it stays so, see whether the function gets to AWS' APIs from its subnets";
        let what = format!("cannot be tried: {}. Without it {without}", chain(&error));
        // An answer that is no denial was most likely given after the right had been looked at.
        let severity = if error.is_transient() { Severity::Unknown } else { Severity::Warn };
        return Some(Finding::new("aws-right-unknown", severity, error.action, what, to_do));
    }
    let policy = policy(error.action, settings);
    let to_do = format!(
        "deploy the template again: the role that it makes has the right, in its policy {policy}. If it is there, a \
         permissions boundary, a service control policy or the policy of a VPC endpoint takes it away"
    );
    let what = format!("is denied, so that {without}: {}", error.answer());
    // IAM's simulator would have to be told the resource and the conditions of each call, and denies whatever lacks them.
    let command = format!(
        "aws iam get-role-policy --policy-name {policy} --role-name \"$(aws lambda get-function-configuration \
         --function-name {function} --region {region} --query Role --output text | sed 's|.*/||')\""
    );
    Some(Finding::new("aws-right-missing", Severity::Fail, error.action, what, to_do).with_command(command))
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
    use super::*;
    use crate::invocation::clock::Clock;
    use crate::test_support::settings;

    fn found(kind: CallErrorKind) -> Finding {
        let mut invocation = Invocation::until(jiff::Timestamp::MAX, "r-1", Clock::starting_at(jiff::Timestamp::MIN));
        "arn:aws:lambda:us-east-1:123456789012:function:drain".clone_into(&mut invocation.function);
        "us-east-1".clone_into(&mut invocation.home.region);
        let error = match kind {
            CallErrorKind::Denied => CallError::answered(schedule::UPDATE, "AccessDenied", "no", None),
            CallErrorKind::Unreachable => CallError::unanswered(schedule::UPDATE, "no"),
            CallErrorKind::Throttled => CallError::answered(schedule::UPDATE, "ThrottlingException", "no", None),
            CallErrorKind::Broken => CallError::answered(schedule::UPDATE, "InternalFailure", "no", None),
            CallErrorKind::Refused => CallError::answered(schedule::UPDATE, "ValidationException", "no", None),
        };
        finding(("maintenance is late", Err(error)), &settings(&[]), &invocation).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_denied_a_call_is_shown_the_policy_that_the_template_gives_the_role() {
        let found = found(CallErrorKind::Denied);
        assert_eq!((found.id, found.severity), ("aws-right-missing", Severity::Fail));
        assert_eq!(
            found.command.unwrap(),
            "aws iam get-role-policy --policy-name drain --role-name \"$(aws lambda get-function-configuration \
             --function-name arn:aws:lambda:us-east-1:123456789012:function:drain --region us-east-1 --query Role \
             --output text | sed 's|.*/||')\""
        );
        let template = include_str!("../../../../../template.yaml");
        assert!(template.contains("        - PolicyName: drain\n"), "the role has a policy of that name");
        for action in [INVOKE, COMPLETE] {
            let named = |variables: &[(&str, &str)]| format!("PolicyName: {}\n", policy(action, &settings(variables)));
            assert!(template.contains(&named(&[])) && template.contains(&named(&[("SPILLWAY_HOOK_GROUP_TAG", "a=b")])));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_call_without_an_answer_nobody_knows_and_an_odd_answer_is_most_likely_that_of_who_is_let_in() {
        for kind in [CallErrorKind::Throttled, CallErrorKind::Unreachable, CallErrorKind::Broken] {
            assert_eq!((found(kind).id, found(kind).severity), ("aws-right-unknown", Severity::Unknown));
        }
        assert_eq!(found(CallErrorKind::Refused).severity, Severity::Warn);
    }
}

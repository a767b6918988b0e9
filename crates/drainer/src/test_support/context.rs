//! A context whose AWS and whose API server follow scripts, and what an action is handed beside it.

use std::ops::Deref;
use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use spillway_eks::{ClusterName, Clusters};
use spillway_notice::continued::History;
use spillway_notice::{Deadline, Kind, Notice};

use super::api_server::ToScript;
use super::aws::{ScriptedAws, itself, put_event};
use super::script::{Expected, Script};
use super::{hook, instance, notice, settings};
use crate::aws::instance::{Instance, managed_by};
use crate::aws::lifecycle::LifecycleAction;
use crate::context::cluster::Access;
use crate::context::{Attempt, Context, Target};
use crate::continuation::Limits;
use crate::continuation::schedule::Scheduler;
use crate::decision::our_hook;
use crate::invocation::Invocation;
use crate::invocation::clock::Clock;

/// The seconds that the invocation of a test has.
pub(crate) const INVOCATION_S: i64 = 900;

/// A context that follows scripts. When it is dropped the test fails, if a call came that was not expected, or one that was
/// never came.
#[derive(Debug)]
pub(crate) struct TestContext {
    context: Context,
    scripts: [Script; 2],
}

macro_rules! client {
    ($sdk:ident, $http:expr) => {
        $sdk::Client::from_conf(
            $sdk::Config::builder()
                .behavior_version_latest()
                .region($sdk::config::Region::new("us-east-1"))
                .credentials_provider(credentials())
                // Each call that a script has is one of ours, and none of the SDK's own.
                .retry_config($sdk::config::retry::RetryConfig::disabled())
                .http_client($http)
                .build(),
        )
    };
}

fn credentials() -> Credentials {
    Credentials::new("id", "secret", None, None, "test")
}

fn provider() -> SharedCredentialsProvider {
    SharedCredentialsProvider::new(credentials())
}

impl TestContext {
    /// With these settings, and what the API server and AWS are to be asked, in order. That a drain has begun, and the receipt,
    /// may be published at any time.
    pub(crate) fn new(
        variables: &[(&str, &str)],
        api: impl IntoIterator<Item = Expected>,
        aws: impl IntoIterator<Item = Expected>,
    ) -> Self {
        let published = ["Spillway Drain Begun", "Spillway Receipt"].map(|what| put_event().with(what).perhaps());
        let (api, aws) = (Script::new("API server", api), Script::new("AWS", aws.into_iter().chain(published)));
        let http = ScriptedAws::By(aws.clone());
        let mut settings = settings(&[variables, &[("SPILLWAY_HOOKS", "spillway,my-lifecycle-hook")]].concat());
        settings.schedules = Some(spillway_settings::Schedules {
            group: "spillway".to_owned(),
            role_arn: "arn:aws:iam::123456789012:role/schedules".to_owned(),
            failures_arn: "arn:aws:sqs:us-east-1:123456789012:failures".to_owned(),
        });
        let scheduler = client!(aws_sdk_scheduler, http.clone());
        let context = Context {
            scheduler: Scheduler::new(scheduler, settings.schedules.as_ref(), ("us-east-1", "drain")),
            itself: itself(http.clone()),
            settings,
            ec2: client!(aws_sdk_ec2, http.clone()),
            autoscaling: client!(aws_sdk_autoscaling, http.clone()),
            load_balancing: client!(aws_sdk_elasticloadbalancingv2, http.clone()),
            eventbridge: client!(aws_sdk_eventbridge, http),
            access: Access {
                clusters: Arc::new(Clusters::new(client!(aws_sdk_eks, ScriptedAws::Eks))),
                credentials: provider(),
                region: "us-east-1".to_owned(),
                connector: Box::new(ToScript(api.clone())),
            },
        };
        Self { context, scripts: [api, aws] }
    }
}

impl Deref for TestContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Drop for TestContext {
    fn drop(&mut self) {
        let problems: Vec<_> = self.scripts.iter().flat_map(Script::problems).collect();
        if std::thread::panicking() {
            eprintln!("{}", problems.join("\n"));
        } else {
            assert!(problems.is_empty(), "{}", problems.join("\n"));
        }
    }
}

/// One notice, the invocation that it came in, and the instance that it is about.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) notice: Notice,
    pub(crate) history: History,
    pub(crate) invocation: Invocation,
    pub(crate) instance: Instance,
    pub(crate) cluster: ClusterName,
}

impl Case {
    /// A notice of that kind and deadline, in an invocation of 900 s that begins when it was sent.
    pub(crate) fn of(kind: Kind, deadline: Deadline) -> Self {
        let end = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(INVOCATION_S);
        Self {
            notice: notice(kind, deadline),
            history: History { notice: json!({"id": "e-1"}), instance: None, earlier: Vec::new(), put_back: None },
            invocation: Invocation::until(end, "r-1", Clock::starting_at(Timestamp::UNIX_EPOCH)),
            instance: instance(),
            cluster: ClusterName::new("prod"),
        }
    }

    /// A spot notice: two minutes.
    pub(crate) fn spot() -> Self {
        Self::of(Kind::Spot, Deadline::Hard(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(120)))
    }

    /// A notice of that kind whose hook waits.
    pub(crate) fn held(kind: Kind) -> Self {
        let mut case = Self::of(kind, Deadline::HeldByHook);
        case.notice.hook = Some(hook("spillway"));
        case
    }

    /// The attempt at it: its hook, if it has one of ours, is looked up.
    pub(crate) async fn attempt<'a>(&'a self, context: &'a Context) -> Attempt<'a> {
        let Self { notice, history, invocation, .. } = self;
        let action = match our_hook(notice, &context.settings) {
            Some(hook) => Some(LifecycleAction::look_up(&context.autoscaling, hook, &notice.instance).await),
            None => None,
        };
        let limits = Limits::of(notice, action.as_ref().map(|action| action.waits), &context.settings);
        Attempt { notice, history, invocation, action, limits }
    }

    /// The node that it is about.
    pub(crate) fn target<'a>(&'a self, attempt: &'a Attempt<'a>) -> Target<'a> {
        let Self { instance, cluster, .. } = self;
        Target { attempt, instance, managed_by: managed_by(&instance.tags), cluster }
    }
}

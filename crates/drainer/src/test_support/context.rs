//! Case of a test: one notice, in one invocation, about one instance.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::json;
use spillway_core::clock::Clock;
use spillway_core::cluster::ClusterName;
use spillway_core::decision::our_hook;
use spillway_core::instance::{Instance, managed_by};
use spillway_core::invocation::Invocation;
use spillway_core::node::claimant::{Claim, ClaimResult};
use spillway_notice::continued::History;
use spillway_notice::{Deadline, Kind, Notice};

use tokio::time::Instant;

use super::api_server::NODE;
use super::{hook, instance, notice};
use crate::aws::lifecycle::LifecycleAction;
use crate::context::{Attempt, Context, Target};
pub(crate) use crate::doubles::scripted::TestContext;

/// Seconds of an invocation in tests.
pub(crate) const INVOCATION_S: i64 = 900;

/// Client of the scripted API server.
pub(crate) async fn client(context: &Context) -> Client {
    let connection = context.access.connect(&ClusterName::new("prod"), Instant::now()).await;
    connection.expect("EKS describes each cluster").client
}

/// Claim of an event on the instance's node.
pub(crate) fn claim(event: &str) -> Claim {
    let (node, provider_id, labels) = (NODE.to_owned(), instance().provider_id(), BTreeMap::new());
    Claim { node, provider_id, how: ClaimResult::First, holder: event.to_owned(), labels, cordoned: None, until: None }
}

/// Notice, invocation and instance.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) notice: Notice,
    pub(crate) history: History,
    pub(crate) invocation: Invocation,
    pub(crate) instance: Instance,
    pub(crate) cluster: ClusterName,
}

impl Case {
    /// Notice in an invocation of 900 s that begins at the notice's time.
    pub(crate) fn of(kind: Kind, deadline: Deadline) -> Self {
        let end = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(INVOCATION_S);
        Self {
            notice: notice(kind, deadline),
            history: History::of(json!({"id": "e-1"})),
            invocation: Invocation::until(end, "r-1", Clock::starting_at(Timestamp::UNIX_EPOCH)),
            instance: instance(),
            cluster: ClusterName::new("prod"),
        }
    }

    /// Spot notice with two minutes.
    pub(crate) fn spot() -> Self {
        Self::of(Kind::Spot, Deadline::Hard(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(120)))
    }

    /// Notice of a waiting hook.
    pub(crate) fn held(kind: Kind) -> Self {
        let mut case = Self::of(kind, Deadline::HeldByHook);
        case.notice.hook = Some(hook("spillway"));
        case
    }

    /// Attempt at the notice, with the timeouts of its hook.
    pub(crate) async fn attempt<'a>(&'a self, context: &'a Context) -> Attempt<'a> {
        let Self { notice, history, invocation, .. } = self;
        let action = match our_hook(notice, &context.settings) {
            Some(hook) => {
                let action = LifecycleAction::new(&context.autoscaling, hook, &notice.instance, history.is_kept);
                action.timeouts().await;
                Some(action)
            }
            None => None,
        };
        Attempt::new(notice, history, invocation, action, &context.settings)
    }

    pub(crate) fn target<'a>(&'a self, attempt: &'a Attempt<'a>) -> Target<'a> {
        let Self { instance, cluster, .. } = self;
        Target { attempt, instance, managed_by: managed_by(&instance.tags), cluster }
    }
}

//! Checks Spillway's rights in the cluster by access reviews. The settings decide which rights are needed.

use futures_util::stream::{self, StreamExt as _};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;
use spillway_drainer::kube::{ApiError, call, until};
use spillway_settings::{KarpenterNodes, Settings};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use super::sign_in::User;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, quoted};
use crate::retry_end;

const ID: CheckId = CheckId::KubernetesRights;

/// Kubernetes group to which deploy/rbac.yaml binds Spillway's rights.
const GROUP: &str = "spillway";

const EVICTION: &str = "pods/eviction";

const REVIEWS_AT_ONCE: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Right {
    group: &'static str,
    /// Resource, or resource and subresource: `pods/eviction`.
    resource: &'static str,
    verb: &'static str,
    without_it: WithoutIt,
    manifest: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WithoutIt {
    Fails(&'static str),
    Suffers(&'static str),
}

use WithoutIt::{Fails, Suffers};

const fn right(group: &'static str, resource: &'static str, verb: &'static str, without_it: WithoutIt) -> Right {
    Right { group, resource, verb, without_it, manifest: "deploy/rbac.yaml" }
}

const OF_EVERY_DRAIN: [Right; 11] = [
    right("", "nodes", "get", Fails("a node is not found if its name differs from the guessed one")),
    right("", "nodes", "list", Fails("a node is not found if its name is neither its instance's DNS name nor its id")),
    right("", "nodes", "patch", Fails("no node can be cordoned, and no drain begins")),
    right("", "nodes", "watch", Suffers("a node that is Ready again, or a cancelled notice, is noticed late")),
    right("", "pods", "list", Fails("the pods of a node are unknown")),
    right("", "pods", "watch", Fails("a drain does not observe the end of its pods")),
    right("", "pods", "delete", Fails("a blocked pod ends with its node, without a clean shutdown")),
    right("", EVICTION, "create", Fails("no pod can be evicted")),
    right("policy", "poddisruptionbudgets", "list", Suffers(RARE_RETRIES)),
    right("policy", "poddisruptionbudgets", "watch", Suffers(RARE_RETRIES)),
    right(
        "storage.k8s.io",
        "csinodes",
        "list",
        Suffers("while EC2 throttles a storm of notices, each lists all nodes"),
    ),
];
const RARE_RETRIES: &str = "evictions that a budget blocks are retried rarely";

/// Rights to wait until volumes are detached.
const OF_VOLUMES: [Right; 2] = [
    right("storage.k8s.io", "volumeattachments", "get", Suffers(NOT_WAITED_FOR)),
    right("", "persistentvolumes", "get", Suffers(NOT_WAITED_FOR)),
];
const NOT_WAITED_FOR: &str = "an instance ends with attached volumes, and the next pod waits six minutes for them";

/// Rights that the setting `SPILLWAY_KARPENTER=nodeclaim` requires.
const OF_NODE_CLAIMS: [Right; 3] = [
    of_node_claims("get", "Karpenter's nodes are not drained"),
    of_node_claims("patch", "Karpenter does not know the deadline of its node"),
    of_node_claims("delete", "Karpenter's nodes are not drained"),
];

const fn of_node_claims(verb: &'static str, without_it: &'static str) -> Right {
    let right = right("karpenter.sh", "nodeclaims", verb, Fails(without_it));
    Right { manifest: "deploy/optional/karpenter.yaml", ..right }
}

/// Right that the setting `SPILLWAY_NODE_EVENTS` requires.
const OF_NODE_EVENTS: [Right; 1] = [Right {
    manifest: "deploy/optional/node-events.yaml",
    ..right("events.k8s.io", "events", "create", Suffers("kubectl describe does not show drains"))
}];

/// Right to set the condition `DisruptionTarget` on pods. A Job's `podFailurePolicy` can ignore the failure of such pods.
const OF_JOBS: Right = Right {
    manifest: "deploy/optional/disruption-target.yaml",
    ..right("", "pods/status", "patch", Suffers("a Job counts a pod that is deleted past its budget as failed"))
};

#[derive(Debug)]
struct ReviewedRight {
    right: Right,
    is_given: Result<bool, ApiError>,
}

impl ReviewedRight {
    fn is_missing(&self) -> bool {
        matches!(self.is_given, Ok(false))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evictions {
    Allowed,
    Denied,
}

/// Checks all rights that the settings require, and returns whether Spillway may evict pods.
pub(super) async fn run_check(
    client: &Client,
    settings: &Settings,
    user: &User,
    invocation: &Invocation,
    cluster: &ClusterName,
    enroll: &str,
    end: Instant,
) -> (Evictions, Check) {
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let answers = stream::iter(needed(settings))
        .map(async |right| ReviewedRight { right, is_given: has(&reviews, right, end).await })
        .buffered(REVIEWS_AT_ONCE)
        .collect::<Vec<_>>();
    let answers = answers.await;
    (evictions(&answers), check(&answers, cluster, user, invocation, enroll))
}

fn evictions(answers: &[ReviewedRight]) -> Evictions {
    let is_denied = answers.iter().any(|answer| answer.right.resource == EVICTION && answer.is_missing());
    if is_denied { Evictions::Denied } else { Evictions::Allowed }
}

/// Returns `true` if Spillway may set the condition `DisruptionTarget` on pods.
pub(super) async fn may_set_disruption_target(client: &Client, end: Instant) -> Result<bool, ApiError> {
    has(&Api::all(client.clone()), OF_JOBS, end).await
}

fn needed(settings: &Settings) -> Vec<Right> {
    let of_node_claims = match settings.karpenter {
        KarpenterNodes::NodeClaim => OF_NODE_CLAIMS.as_slice(),
        KarpenterNodes::Leave => &[],
    };
    let of_node_events = if settings.node_events { OF_NODE_EVENTS.as_slice() } else { &[] };
    let optional = OF_VOLUMES.iter().chain(of_node_claims).chain(of_node_events);
    OF_EVERY_DRAIN.iter().chain(optional).copied().collect()
}

async fn has(reviews: &Api<SelfSubjectAccessReview>, right: Right, end: Instant) -> Result<bool, ApiError> {
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (right.resource, None),
    };
    let attributes = ResourceAttributes {
        group: Some(right.group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(right.verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), non_resource_attributes: None };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let params = PostParams::default();
    let answer = until(retry_end(end), async || call(reviews.create(&params, &review)).await, |_| ()).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

fn check(
    answers: &[ReviewedRight],
    cluster: &ClusterName,
    user: &User,
    invocation: &Invocation,
    enroll: &str,
) -> Check {
    if let Some(error) = answers.iter().find_map(|answer| answer.is_given.as_ref().err()) {
        return Check::unknown(ID, format!("cannot review the rights of Spillway: {}", chain(&error)));
    }
    let missing: Vec<Right> = answers.iter().filter(|answer| answer.is_missing()).map(|answer| answer.right).collect();
    if missing.is_empty() {
        return Check::made(ID, format!("Spillway has all {} rights", answers.len()), Vec::new());
    }
    let what = format!("Spillway lacks {} of {} rights", missing.len(), answers.len());
    let findings = if missing.len() == answers.len() {
        vec![none_at_all(cluster, user, invocation, enroll)]
    } else {
        missing.iter().map(|right| right.is_missing(enroll)).collect()
    };
    Check::made(ID, what, findings)
}

/// Reports that the group `spillway` has no rights, or that the group does not contain the function.
fn none_at_all(cluster: &ClusterName, user: &User, invocation: &Invocation, enroll: &str) -> Finding {
    let (name, function, region) = (quoted(cluster), &invocation.function, &invocation.home.region);
    let object = format!("group {GROUP}");
    if user.groups.iter().any(|group| group == GROUP) {
        let what = "has no rights in the cluster: no drain is possible";
        let to_do = "enroll the cluster, or apply deploy/rbac.yaml with your deployment tool";
        return Finding::new(FindingId::NoRights, Severity::Fail, object, what, to_do).with_command(enroll);
    }
    let what = format!("does not contain the function, which signs in as {}: no drain is possible", user.name);
    let to_do = "add the role to the group in its access entry, or in its line of aws-auth";
    Finding::new(FindingId::NotInGroup, Severity::Fail, object, what, to_do).with_command(format!(
        "aws eks update-access-entry --cluster-name {name} --region {region} --kubernetes-groups {GROUP} \
         --principal-arn \"$(aws lambda get-function-configuration --function-name {function} --region {region} \
         --query Role --output text)\""
    ))
}

impl Right {
    fn is_missing(self, enroll: &str) -> Finding {
        let Self { group, resource, verb, without_it, manifest } = self;
        let (severity, without_it) = match without_it {
            Fails(without_it) => (Severity::Fail, without_it),
            Suffers(without_it) => (Severity::Warn, without_it),
        };
        let of_group = if group.is_empty() { String::new() } else { format!(" ({group})") };
        let what = format!("Spillway may not {verb} {resource}{of_group}: {without_it}");
        let to_do = format!("enroll the cluster again, or apply {manifest} with your deployment tool");
        let optional = manifest.strip_prefix("deploy/optional/").map(|file| format!(" --with {file}"));
        Finding::new(FindingId::MissingRight, severity, format!("{verb} {resource}"), what, to_do)
            .with_command(format!("{enroll}{}", optional.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use spillway_core::clock::Clock;

    use super::*;
    use crate::report::CheckStatus;

    /// Rights of a manifest: group, resource, verb.
    fn granted(manifest: &str) -> Vec<[String; 3]> {
        let list = |line: &str| -> Vec<String> {
            let inner = line.split_once('[').unwrap().1.trim_end_matches(']');
            inner.split(',').map(|item| item.trim().trim_matches('"').to_owned()).collect()
        };
        let (mut rights, mut groups, mut resources) = (Vec::new(), Vec::new(), Vec::new());
        for line in manifest.lines().map(str::trim) {
            match line.split_once(": ") {
                Some(("- apiGroups", _)) => groups = list(line),
                Some(("resources", _)) => resources = list(line),
                Some(("verbs", _)) => rights.extend(list(line).into_iter().flat_map(|verb| {
                    let of_verb = |group: &String, resource: &String| [group.clone(), resource.clone(), verb.clone()];
                    let pairs = groups.iter().flat_map(|group| resources.iter().map(move |resource| (group, resource)));
                    pairs.map(|(group, resource)| of_verb(group, resource)).collect::<Vec<_>>()
                })),
                _ => {}
            }
        }
        rights
    }

    #[test]
    fn reviewed_rights_are_those_of_the_manifests() {
        let mut granted = granted(concat!(
            include_str!("../../../../deploy/rbac.yaml"),
            include_str!("../../../../deploy/optional/disruption-target.yaml"),
            include_str!("../../../../deploy/optional/node-events.yaml"),
            include_str!("../../../../deploy/optional/karpenter.yaml"),
        ));
        let of_settings = OF_VOLUMES.iter().chain(&OF_NODE_CLAIMS).chain(&OF_NODE_EVENTS);
        let rights = OF_EVERY_DRAIN.iter().chain(of_settings).chain([&OF_JOBS]);
        let mut reviewed: Vec<_> =
            rights.map(|right| [right.group, right.resource, right.verb].map(str::to_owned)).collect();
        granted.sort();
        // Two manifests may grant one right.
        granted.dedup();
        reviewed.sort();
        assert_eq!(reviewed, granted);
    }

    fn with_rights(has: impl Fn(Right) -> bool, groups: &[&str]) -> Check {
        let answer = |right: &Right| ReviewedRight { right: *right, is_given: Ok(has(*right)) };
        let answers: Vec<_> = OF_EVERY_DRAIN.iter().map(answer).collect();
        with_answers(&answers, groups)
    }

    fn with_answers(answers: &[ReviewedRight], groups: &[&str]) -> Check {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let user = User { name: "arn:aws:sts::123456789012:assumed-role/spillway/drain".to_owned(), groups };
        let mut invocation = Invocation::until(jiff::Timestamp::MAX, "r-1", Clock::starting_at(jiff::Timestamp::MIN));
        "arn:aws:lambda:us-east-1:123456789012:function:drain".clone_into(&mut invocation.function);
        "us-east-1".clone_into(&mut invocation.home.region);
        let cluster = ClusterName::new("prod");
        let enroll = crate::cluster::enroll::command(&cluster, "spillway", &invocation);
        check(answers, &cluster, &user, &invocation, &enroll)
    }

    #[tokio::test(start_paused = true)]
    async fn all_rights_are_ok_and_a_failed_review_is_unknown() {
        let check = with_rights(|_| true, &[GROUP]);
        assert_eq!((check.status, check.findings.len()), (CheckStatus::Ok, 0));
        let answers = [
            ReviewedRight { right: OF_EVERY_DRAIN[0], is_given: Ok(true) },
            ReviewedRight { right: OF_EVERY_DRAIN[1], is_given: Err(ApiError::TimeUp) },
        ];
        assert_eq!(with_answers(&answers, &[GROUP]).status, CheckStatus::Unknown);
    }

    #[test]
    fn evictions_are_denied_only_by_an_answer() {
        let answers = |of_eviction: fn() -> Result<bool, ApiError>| {
            OF_EVERY_DRAIN.map(|right| {
                let is_given = if right.resource == EVICTION { of_eviction() } else { Ok(false) };
                ReviewedRight { right, is_given }
            })
        };
        assert_eq!(evictions(&answers(|| Ok(false))), Evictions::Denied);
        assert_eq!(evictions(&answers(|| Ok(true))), Evictions::Allowed);
        assert_eq!(evictions(&answers(|| Err(ApiError::TimeUp))), Evictions::Allowed);
    }

    /// Missing: a right, all rights, the group.
    #[tokio::test(start_paused = true)]
    async fn each_cause_of_missing_rights_has_its_finding() {
        for (check, id) in [
            (
                with_rights(|right| (right.resource, right.verb) != ("pods", "delete"), &[GROUP]),
                FindingId::MissingRight,
            ),
            (with_rights(|_| false, &[GROUP]), FindingId::NoRights),
            (with_rights(|_| false, &["others"]), FindingId::NotInGroup),
        ] {
            assert_eq!((check.status, check.findings.len(), check.findings[0].id), (CheckStatus::Fail, 1, id));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn optional_right_has_its_file_in_the_command() {
        let is = |right, given| ReviewedRight { right, is_given: Ok(given) };
        let answers = [is(OF_EVERY_DRAIN[0], true), is(of_node_claims("get", "no drain"), false)];
        let command = with_answers(&answers, &[GROUP]).findings[0].command.clone().unwrap();
        assert!(command.ends_with("--cluster prod --with karpenter.yaml"), "{command}");
    }

    #[tokio::test(start_paused = true)]
    async fn missing_watch_of_budgets_is_a_warning() {
        let check = with_rights(|right| (right.resource, right.verb) != ("poddisruptionbudgets", "watch"), &[GROUP]);
        assert_eq!(check.status, CheckStatus::Warn);
        assert_eq!(check.findings[0].object, "watch poddisruptionbudgets");
    }
}

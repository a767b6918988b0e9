//! Each right of deploy/rbac.yaml, and of deploy/optional/ what the settings or the cluster's Jobs need: the API server says whether
//! we have it.

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
use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, quoted};

const ID: CheckId = CheckId::KubernetesRights;

/// The group whose rights deploy/rbac.yaml has, and into which the access entry puts the function's role.
const GROUP: &str = "spillway";

const EVICTION: &str = "pods/eviction";

/// How many reviews are asked for at once: they are small, and all of them are wanted.
const ASKED_AT_ONCE: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Right {
    group: &'static str,
    /// With its subresource: `pods/eviction`.
    resource: &'static str,
    verb: &'static str,
    without_it: WithoutIt,
    manifest: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WithoutIt {
    /// It fails.
    Fails(&'static str),
    /// It works, and not as well.
    Suffers(&'static str),
}

use WithoutIt::{Fails, Suffers};

const fn right(group: &'static str, resource: &'static str, verb: &'static str, without_it: WithoutIt) -> Right {
    Right { group, resource, verb, without_it, manifest: "deploy/rbac.yaml" }
}

const OF_EVERY_DRAIN: [Right; 11] = [
    right("", "nodes", "get", Fails("a node whose name is not the one guessed is not found")),
    right("", "nodes", "list", Fails("a node that is not called by its instance's DNS name or id is not found")),
    right("", "nodes", "patch", Fails("no node can be cordoned, and no drain begins")),
    right(
        "",
        "nodes",
        "watch",
        Suffers("it is seen late that a node is Ready again, or that its notice was called off"),
    ),
    right("", "pods", "list", Fails("nobody knows what runs on the node")),
    right("", "pods", "watch", Fails("a drain does not see that its pods have gone")),
    right("", "pods", "delete", Fails("a pod that something blocks goes down with its node, without a clean shutdown")),
    right("", EVICTION, "create", Fails("no pod can be evicted")),
    right(
        "policy",
        "poddisruptionbudgets",
        "list",
        Suffers("pods that a budget blocks are requested only now and then"),
    ),
    right(
        "policy",
        "poddisruptionbudgets",
        "watch",
        Suffers("pods that a budget blocks are requested only now and then"),
    ),
    right(
        "storage.k8s.io",
        "csinodes",
        "list",
        Suffers("while EC2 throttles a storm of notices, each lists all nodes"),
    ),
];

/// The rights of a drain for a hook, which waits for volumes.
const OF_VOLUMES: [Right; 2] = [
    right("storage.k8s.io", "volumeattachments", "get", Suffers(NOT_WAITED_FOR)),
    right("", "persistentvolumes", "get", Suffers(NOT_WAITED_FOR)),
];
const NOT_WAITED_FOR: &str = "an instance goes with volumes attached, and the next pod waits six minutes for them";

/// The rights that the setting `SPILLWAY_KARPENTER=nodeclaim` needs.
const OF_NODE_CLAIMS: [Right; 3] = [
    of_node_claims("get", "no node of Karpenter's is drained"),
    of_node_claims("patch", "Karpenter is not told by when its node has to be empty"),
    of_node_claims("delete", "no node of Karpenter's is drained"),
];

const fn of_node_claims(verb: &'static str, without_it: &'static str) -> Right {
    let right = right("karpenter.sh", "nodeclaims", verb, Fails(without_it));
    Right { manifest: "deploy/optional/karpenter.yaml", ..right }
}

/// The right that the setting `SPILLWAY_NODE_EVENTS` needs.
const OF_NODE_EVENTS: [Right; 1] = [Right {
    manifest: "deploy/optional/node-events.yaml",
    ..right("events.k8s.io", "events", "create", Suffers("drains are not seen by kubectl describe"))
}];

/// The right that Jobs need whose pods a budget may block to the end.
const OF_JOBS: Right = Right {
    manifest: "deploy/optional/disruption-target.yaml",
    ..right("", "pods/status", "patch", Suffers("a Job takes a pod for failed that is deleted past its budget"))
};

#[derive(Debug)]
struct Answer {
    right: Right,
    is_given: Result<bool, ApiError>,
}

impl Answer {
    fn is_missing(&self) -> bool {
        matches!(self.is_given, Ok(false))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evictions {
    Allowed,
    Denied,
}

/// Asks for each right that the settings need; answers also whether it has that to evict.
pub(super) async fn look(
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
        .map(async |right| Answer { right, is_given: has(&reviews, right, end).await })
        .buffered(ASKED_AT_ONCE)
        .collect::<Vec<_>>();
    let answers = answers.await;
    (evictions(&answers), said(&answers, cluster, user, invocation, enroll))
}

fn evictions(answers: &[Answer]) -> Evictions {
    let is_denied = answers.iter().any(|answer| answer.right.resource == EVICTION && answer.is_missing());
    if is_denied { Evictions::Denied } else { Evictions::Allowed }
}

/// Whether a Job can be told that its pod was disrupted and has not failed.
pub(super) async fn can_tell_jobs(client: &Client, end: Instant) -> Result<bool, ApiError> {
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
    let answer = until(asked_until(end), async || call(reviews.create(&params, &review)).await, |_| ()).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// What the answers come to. Pure.
/// `enroll`: the command that lets Spillway into this cluster.
fn said(answers: &[Answer], cluster: &ClusterName, user: &User, invocation: &Invocation, enroll: &str) -> Check {
    if let Some(error) = answers.iter().find_map(|answer| answer.is_given.as_ref().err()) {
        return Check::unknown(ID, format!("the API server does not say which rights Spillway has: {}", chain(&error)));
    }
    let missing: Vec<Right> = answers.iter().filter(|answer| answer.is_missing()).map(|answer| answer.right).collect();
    if missing.is_empty() {
        let all = answers.len();
        return Check::made(ID, format!("Spillway has each of the {all} rights that it needs"), Vec::new());
    }
    let what = format!("Spillway lacks {} of the {} rights that it needs", missing.len(), answers.len());
    let findings = if missing.len() == answers.len() {
        vec![none_at_all(cluster, user, invocation, enroll)]
    } else {
        missing.iter().map(|right| right.is_missing(enroll)).collect()
    };
    Check::made(ID, what, findings)
}

/// Either nobody has given the group its rights, or we are not in the group.
fn none_at_all(cluster: &ClusterName, user: &User, invocation: &Invocation, enroll: &str) -> Finding {
    let (name, function, region) = (quoted(cluster), &invocation.function, &invocation.home.region);
    let object = format!("group {GROUP}");
    if user.groups.iter().any(|group| group == GROUP) {
        let what = format!("the group {GROUP} has no rights in the cluster, so that no drain can do anything");
        let to_do = "enrol the cluster, or have what manages it apply deploy/rbac.yaml";
        return Finding::new(FindingId::NoRights, Severity::Fail, object, what, to_do).with_command(enroll);
    }
    let what = format!(
        "the function signs in as {}, but not as one of the group {GROUP}, whose rights it is to have",
        user.name
    );
    let to_do = "put the role into the group by its access entry, or by its line in aws-auth";
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
        let to_do = format!("bring the cluster up to date, or have what manages it apply {manifest}");
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

    /// The rights that a manifest grants: group, resource, verb.
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
    fn every_right_of_the_manifests_is_asked_for_and_no_other() {
        let mut granted = granted(concat!(
            include_str!("../../../../deploy/rbac.yaml"),
            include_str!("../../../../deploy/optional/disruption-target.yaml"),
            include_str!("../../../../deploy/optional/node-events.yaml"),
            include_str!("../../../../deploy/optional/karpenter.yaml"),
        ));
        let of_settings = OF_VOLUMES.iter().chain(&OF_NODE_CLAIMS).chain(&OF_NODE_EVENTS);
        let rights = OF_EVERY_DRAIN.iter().chain(of_settings).chain([&OF_JOBS]);
        let mut asked: Vec<_> =
            rights.map(|right| [right.group, right.resource, right.verb].map(str::to_owned)).collect();
        granted.sort();
        // The flow of events is told by the same row once more.
        granted.dedup();
        asked.sort();
        assert_eq!(asked, granted);
    }

    fn check(has: impl Fn(Right) -> bool, groups: &[&str]) -> Check {
        let answer = |right: &Right| Answer { right: *right, is_given: Ok(has(*right)) };
        let answers: Vec<_> = OF_EVERY_DRAIN.iter().map(answer).collect();
        told(&answers, groups)
    }

    fn told(answers: &[Answer], groups: &[&str]) -> Check {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let user = User { name: "arn:aws:sts::123456789012:assumed-role/spillway/drain".to_owned(), groups };
        let mut invocation = Invocation::until(jiff::Timestamp::MAX, "r-1", Clock::starting_at(jiff::Timestamp::MIN));
        "arn:aws:lambda:us-east-1:123456789012:function:drain".clone_into(&mut invocation.function);
        "us-east-1".clone_into(&mut invocation.home.region);
        let cluster = ClusterName::new("prod");
        let enroll = crate::cluster::enroll::command(&cluster, "spillway", &invocation);
        said(answers, &cluster, &user, &invocation, &enroll)
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_every_right_has_no_finding() {
        let check = check(|_| true, &[GROUP]);
        assert_eq!((check.status, check.findings.len()), (CheckStatus::Ok, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_api_server_does_not_say_nobody_knows() {
        let answers = [
            Answer { right: OF_EVERY_DRAIN[0], is_given: Ok(true) },
            Answer { right: OF_EVERY_DRAIN[1], is_given: Err(ApiError::TimeUp) },
        ];
        assert_eq!(told(&answers, &[GROUP]).status, CheckStatus::Unknown);
    }

    #[test]
    fn evictions_are_denied_only_if_the_api_server_says_so() {
        let answers = |of_eviction: fn() -> Result<bool, ApiError>| {
            OF_EVERY_DRAIN.map(|right| {
                let is_given = if right.resource == EVICTION { of_eviction() } else { Ok(false) };
                Answer { right, is_given }
            })
        };
        assert_eq!(evictions(&answers(|| Ok(false))), Evictions::Denied);
        assert_eq!(evictions(&answers(|| Ok(true))), Evictions::Allowed);
        assert_eq!(evictions(&answers(|| Err(ApiError::TimeUp))), Evictions::Allowed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_right_is_named_by_verb_and_resource_with_what_fails_without_it() {
        let check = check(|right| (right.resource, right.verb) != ("pods", "delete"), &[GROUP]);
        insta::assert_snapshot!(serde_json::to_string_pretty(&check).unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_of_an_optional_file_is_missing_with_the_command_that_applies_the_file() {
        let is = |right, given| Answer { right, is_given: Ok(given) };
        let answers = [is(OF_EVERY_DRAIN[0], true), is(of_node_claims("get", "it stays"), false)];
        let command = told(&answers, &[GROUP]).findings[0].command.clone().unwrap();
        assert!(command.ends_with("--cluster prod --with karpenter.yaml"), "{command}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_the_right_to_watch_budgets_a_drain_works_and_suffers() {
        let check = check(|right| (right.resource, right.verb) != ("poddisruptionbudgets", "watch"), &[GROUP]);
        assert_eq!(check.status, CheckStatus::Warn);
        assert_eq!(check.findings[0].object, "watch poddisruptionbudgets");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_no_right_at_all_is_told_whether_the_rights_are_missing_or_the_group() {
        for groups in [GROUP, "others"] {
            insta::assert_snapshot!(serde_json::to_string_pretty(&check(|_| false, &[groups])).unwrap());
        }
    }
}

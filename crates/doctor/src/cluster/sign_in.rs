//! The way into a cluster: network, certificate, access entry. Each fails in its own way, and is mended in its own.

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, SelfSubjectReviewStatus};
use kube::api::PostParams;
use kube::{Api, Client};
use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;
use spillway_drainer::Failure;
use spillway_drainer::kube::{ApiError, call, until};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, PUT_BACK, Severity, quoted};

const ID: CheckId = CheckId::SignIn;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
}

/// Asks the API server who we are. Without a user we are not in.
pub(super) async fn look(
    client: &Client,
    cluster: &ClusterName,
    invocation: &Invocation,
    enroll: &str,
    end: Instant,
) -> (Option<User>, Check) {
    let reviews = Api::<SelfSubjectReview>::all(client.clone());
    let ask = async || {
        let review = SelfSubjectReview::default();
        call(reviews.create(&PostParams::default(), &review)).await
    };
    match until(asked_until(end), ask, |_| ()).await {
        Ok(review) => signed_in(cluster, review.status.unwrap_or_default()),
        Err(error) => (None, not_signed_in(&error, cluster, invocation, enroll)),
    }
}

pub(super) fn unknown_cluster(failure: &Failure, cluster: &ClusterName, invocation: &Invocation) -> Check {
    let (name, region) = (quoted(cluster), &invocation.home.region);
    let to_do = format!(
        "if there is no such cluster, correct its name; if the right is missing, the parameter Clusters names others only, or \
         somebody took it away: {PUT_BACK}"
    );
    let finding =
        Finding::new(FindingId::UnknownCluster, Severity::Fail, format!("cluster {cluster}"), failure.text(), to_do)
            .with_command(format!("aws eks describe-cluster --name {name} --region {region}"));
    Check::made(ID, format!("Spillway cannot find the way into cluster {cluster}"), vec![finding])
}

fn signed_in(cluster: &ClusterName, status: SelfSubjectReviewStatus) -> (Option<User>, Check) {
    let user = status.user_info.unwrap_or_default();
    let name = user.username.unwrap_or_else(|| "a user without a name".to_owned());
    let check = Check::made(ID, format!("Spillway signs in to cluster {cluster} as {name}"), Vec::new());
    (Some(User { name, groups: user.groups.unwrap_or_default() }), check)
}

fn not_signed_in(error: &ApiError, cluster: &ClusterName, invocation: &Invocation, enroll: &str) -> Check {
    let (name, region) = (quoted(cluster), &invocation.home.region);
    let said = chain(error);
    let (id, what, to_do, command) = match error {
        ApiError::Certificate(_) => (
            FindingId::WrongCertificateAuthority,
            format!("{said}: no drain can reach the cluster"),
            "see whether the cluster was made again under its old name, or something stands between the function and its \
             endpoint; compare the authority that EKS names with the one that the endpoint shows",
            format!(
                "aws eks describe-cluster --name {name} --region {region} --query cluster.certificateAuthority.data \
                 --output text | base64 -d | openssl x509 -noout -subject -dates"
            ),
        ),
        ApiError::NoConnection(_) | ApiError::TimeUp => (
            FindingId::NoNetwork,
            format!("the function gets no connection to the API server, so that no drain can: {said}"),
            "a cluster whose endpoint is private, or open to certain addresses only, needs the parameters SubnetIds and \
             SecurityGroupIds, and its security group has to let port 443 in from there (see docs/install.md)",
            format!("aws eks describe-cluster --name {name} --region {region} --query cluster.resourcesVpcConfig"),
        ),
        _ if error.code() == Some(401) => (
            FindingId::NoAccessEntry,
            "the cluster does not know the function's role, so that no drain can sign in".to_owned(),
            "enrol the cluster, which prints a line for aws-auth if its authentication mode is CONFIG_MAP; or give the role an \
             access entry yourself (see docs/install.md); or leave the cluster out of the parameter Clusters",
            enroll.to_owned(),
        ),
        // Signed in, and refused: who may ask nothing of himself lacks what Kubernetes gives everybody.
        _ if error.code() == Some(403) => (
            FindingId::NoBasicRights,
            format!("the function signs in, and may not even ask who it is: {said}"),
            "give the group system:authenticated its role system:basic-user back, and apply Spillway's own rights",
            format!(
                "kubectl create clusterrolebinding system:basic-user --clusterrole=system:basic-user \
                 --group=system:authenticated; {enroll}"
            ),
        ),
        _ => (
            FindingId::ApiServerError,
            format!("the API server does not answer as it should: {said}"),
            "look at the cluster's health; drains try again for as long as their notice lets them",
            format!("aws eks describe-cluster --name {name} --region {region} --query cluster.health"),
        ),
    };
    let finding = Finding::new(id, Severity::Fail, format!("cluster {cluster}"), what, to_do).with_command(command);
    Check::made(ID, format!("Spillway cannot sign in to cluster {cluster}"), vec![finding])
}

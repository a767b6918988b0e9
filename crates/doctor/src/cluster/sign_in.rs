//! Checks that the function can connect and sign in to a cluster.

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, SelfSubjectReviewStatus};
use kube::api::PostParams;
use kube::{Api, Client};
use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;
use spillway_drainer::Failure;
use spillway_drainer::kube::{ApiError, call, until};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, REVERT_DRIFT, Severity, quoted};
use crate::retry_end;

const ID: CheckId = CheckId::SignIn;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
}

/// Reads the function's own Kubernetes user. Returns no user if the sign-in fails.
pub(super) async fn run_check(
    client: &Client,
    cluster: &ClusterName,
    invocation: &Invocation,
    enroll: &str,
    end: Instant,
) -> (Option<User>, Check) {
    let reviews = Api::<SelfSubjectReview>::all(client.clone());
    let review = async || {
        let review = SelfSubjectReview::default();
        call(reviews.create(&PostParams::default(), &review)).await
    };
    match until(retry_end(end), review, |_| ()).await {
        Ok(review) => signed_in(cluster, review.status.unwrap_or_default()),
        Err(error) => (None, not_signed_in(&error, cluster, invocation, enroll)),
    }
}

pub(super) fn unknown_cluster(failure: &Failure, cluster: &ClusterName, invocation: &Invocation) -> Check {
    let (name, region) = (quoted(cluster), &invocation.home.region);
    let to_do = format!(
        "correct the name if the cluster does not exist; if a permission is missing, add the cluster to the parameter Clusters, or \
         {REVERT_DRIFT}"
    );
    let finding =
        Finding::new(FindingId::UnknownCluster, Severity::Fail, format!("cluster {cluster}"), failure.text(), to_do)
            .with_command(format!("aws eks describe-cluster --name {name} --region {region}"));
    Check::made(ID, format!("cannot describe cluster {cluster}"), vec![finding])
}

fn signed_in(cluster: &ClusterName, status: SelfSubjectReviewStatus) -> (Option<User>, Check) {
    let user = status.user_info.unwrap_or_default();
    let name = user.username.unwrap_or_else(|| "a user without a name".to_owned());
    let check = Check::made(ID, format!("Spillway signs in to cluster {cluster} as {name}"), Vec::new());
    (Some(User { name, groups: user.groups.unwrap_or_default() }), check)
}

fn not_signed_in(error: &ApiError, cluster: &ClusterName, invocation: &Invocation, enroll: &str) -> Check {
    let (name, region) = (quoted(cluster), &invocation.home.region);
    let answer = chain(error);
    let (id, what, to_do, command) = match error {
        ApiError::Certificate(_) => (
            FindingId::WrongCertificateAuthority,
            format!("has a wrong certificate, so that no drain can reach the cluster: {answer}"),
            "check whether the cluster was recreated under its name, or a proxy intercepts the connection to its endpoint; \
             compare the authority of EKS with the certificate of the endpoint",
            format!(
                "aws eks describe-cluster --name {name} --region {region} --query cluster.certificateAuthority.data \
                 --output text | base64 -d | openssl x509 -noout -subject -dates"
            ),
        ),
        ApiError::NoConnection(_) | ApiError::TimeUp => (
            FindingId::NoNetwork,
            format!("cannot be reached from the function, so that no drain can reach it: {answer}"),
            "a private or restricted endpoint needs the parameters SubnetIds and SecurityGroupIds, and the security group of the \
             cluster must allow port 443 from there (docs/install.md)",
            format!("aws eks describe-cluster --name {name} --region {region} --query cluster.resourcesVpcConfig"),
        ),
        _ if error.code() == Some(401) => (
            FindingId::NoAccessEntry,
            "does not know the function's role: no drain can sign in".to_owned(),
            "enroll the cluster, which prints a line for aws-auth in authentication mode CONFIG_MAP; or create an access entry for \
             the role (docs/install.md); or remove the cluster from the parameter Clusters",
            enroll.to_owned(),
        ),
        // By default, Kubernetes gives this right to all users.
        _ if error.code() == Some(403) => (
            FindingId::NoBasicRights,
            format!("lets the function sign in, but not read its own name: {answer}"),
            "bind the role system:basic-user to the group system:authenticated again, and apply Spillway's own rights",
            format!(
                "kubectl create clusterrolebinding system:basic-user --clusterrole=system:basic-user \
                 --group=system:authenticated; {enroll}"
            ),
        ),
        _ => (
            FindingId::ApiServerError,
            format!("has an API server that answers with an error: {answer}"),
            "check the health of the cluster; drains retry until their deadline",
            format!("aws eks describe-cluster --name {name} --region {region} --query cluster.health"),
        ),
    };
    let finding = Finding::new(id, Severity::Fail, format!("cluster {cluster}"), what, to_do).with_command(command);
    Check::made(ID, format!("Spillway cannot sign in to cluster {cluster}"), vec![finding])
}

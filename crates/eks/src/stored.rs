//! Copies of cluster descriptions in Parameter Store. The self-test writes them. Drains read them when EKS does not respond.
//!
//! EKS accepts about ten calls a second, but many simultaneous notices start hundreds of processes that call EKS.
//!
//! A further parameter lists the names of all clusters.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use spillway_aws_call::{Call, CallError, Caller, Service, dns_suffix};
use spillway_core::cluster::ClusterName;
use spillway_retry::until;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::clusters::Cluster;

const GET: &str = "ssm:GetParameter";
const GET_SEVERAL: &str = "ssm:GetParameters";
const PUT: &str = "ssm:PutParameter";
/// Maximum number of names in one `GetParameters` call.
const NAMES_AT_ONCE: usize = 10;
/// Name of the parameter that lists all clusters. Cluster names cannot begin with an underscore.
const NAMES: &str = "_names";
/// Maximum length of the value of a standard-tier parameter.
const LONGEST_VALUE: usize = 4096;
/// Maximum time to read the description of one cluster, with retries.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// Maximum time to read the descriptions of all clusters, with retries.
const ALL_READ_WITHIN: Duration = Duration::from_secs(30);
/// Pause after a write, because Parameter Store accepts three writes a second.
const WRITE_PAUSE: Duration = Duration::from_millis(350);

#[derive(Debug)]
pub struct StoredClusters {
    caller: Caller,
    folder: String,
    region: String,
    /// Locked during a write and during the pause after the write.
    writing: Mutex<()>,
}

/// Treatment of stored cluster names that the new list does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnlistedNames {
    Keep,
    Drop,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Unusable {
    #[error("it is not what a self-test writes")]
    Unreadable,
    #[error("{0} is no endpoint of EKS in this Region")]
    Endpoint(String),
}

impl StoredClusters {
    #[must_use]
    pub fn new(caller: Caller, stack: &str, region: &str) -> Self {
        Self {
            caller,
            folder: format!("/spillway/{stack}/clusters"),
            region: region.to_owned(),
            writing: Mutex::new(()),
        }
    }

    /// Returns the stored description of a cluster, or `None` if the description is missing or unusable.
    pub(crate) async fn read(&self, name: &ClusterName) -> Option<Cluster> {
        let parameter = self.parameter(name);
        match self.get(&parameter, READ_WITHIN).await {
            Ok(text) => self.usable(name, &text?),
            Err(error) => {
                tracing::warn!(error = %error, "cannot read parameter {parameter}, which has the endpoint of cluster {name}");
                None
            }
        }
    }

    pub(crate) async fn read_all(&self) -> Vec<Cluster> {
        match self.get_all().await {
            Ok(found) => found.iter().filter_map(|(name, text)| self.usable(name, text)).collect(),
            Err(error) => {
                tracing::warn!(error = %error, "cannot read the clusters below {}; only known clusters are searched", self.folder);
                Vec::new()
            }
        }
    }

    fn usable(&self, name: &ClusterName, text: &str) -> Option<Cluster> {
        let unusable = |error: &Unusable| {
            let parameter = self.parameter(name);
            tracing::warn!(
                "parameter {parameter} is not used: {error}; find its writer in CloudTrail, the next self-test overwrites it"
            );
        };
        read(name, text, &self.region).inspect_err(unusable).ok()
    }

    /// Writes the description of a cluster. Does nothing if the description is unchanged or the endpoint is not in an EKS domain.
    pub(crate) async fn store(&self, cluster: &Cluster) -> Result<(), CallError> {
        let (parameter, text) = (self.parameter(&cluster.name), text_of(cluster));
        if read(&cluster.name, &text, &self.region).is_err()
            || self.get(&parameter, READ_WITHIN).await?.as_ref() == Some(&text)
        {
            return Ok(());
        }
        self.put(&parameter, &text).await
    }

    /// Writes the list of cluster names. Omits names if the list would exceed [`LONGEST_VALUE`].
    pub(crate) async fn store_names(&self, names: &[ClusterName], others: UnlistedNames) -> Result<(), CallError> {
        let before = self.names(READ_WITHIN).await?;
        let kept = before.iter().filter(|_| others == UnlistedNames::Keep);
        let all: BTreeSet<_> = names.iter().chain(kept).collect();
        let mut text = String::new();
        for name in all {
            let separator = if text.is_empty() { "" } else { "," };
            if text.len() + separator.len() + name.as_str().len() <= LONGEST_VALUE {
                text = format!("{text}{separator}{name}");
            }
        }
        if text.is_empty() || text == joined(&before) {
            return Ok(());
        }
        self.put(&format!("{}/{NAMES}", self.folder), &text).await
    }

    async fn names(&self, within: Duration) -> Result<Vec<ClusterName>, CallError> {
        let text = self.get(&format!("{}/{NAMES}", self.folder), within).await?.unwrap_or_default();
        Ok(text.split(',').filter(|name| !name.is_empty()).map(ClusterName::new).collect())
    }

    async fn get_all(&self) -> Result<Vec<(ClusterName, String)>, CallError> {
        let mut found = Vec::new();
        for names in self.names(ALL_READ_WITHIN).await?.chunks(NAMES_AT_ONCE) {
            let parameters: Vec<_> = names.iter().map(|name| self.parameter(name)).collect();
            let body = json!({ "Names": parameters }).to_string();
            let call = Call::json(Service::Ssm, GET_SEVERAL, "AmazonSSM.GetParameters", &body);
            let answer = self.read_call(&call, ALL_READ_WITHIN).await?;
            let there = answer["Parameters"].as_array().into_iter().flatten();
            found.extend(there.filter_map(|one| {
                let name = one["Name"].as_str()?.rsplit('/').next()?;
                Some((ClusterName::new(name), one["Value"].as_str()?.to_owned()))
            }));
        }
        Ok(found)
    }

    async fn put(&self, parameter: &str, text: &str) -> Result<(), CallError> {
        let body = json!({ "Name": parameter, "Value": text, "Type": "String", "Overwrite": true }).to_string();
        let _writing = self.writing.lock().await;
        let written = self.caller.json(&Call::json(Service::Ssm, PUT, "AmazonSSM.PutParameter", &body)).await;
        sleep(WRITE_PAUSE).await;
        written.map(drop)
    }

    async fn get(&self, parameter: &str, within: Duration) -> Result<Option<String>, CallError> {
        let body = json!({ "Name": parameter }).to_string();
        match self.read_call(&Call::json(Service::Ssm, GET, "AmazonSSM.GetParameter", &body), within).await {
            Ok(answer) => Ok(answer["Parameter"]["Value"].as_str().map(str::to_owned)),
            Err(error) if error.has_code("ParameterNotFound") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Calls Parameter Store, with retries, because many simultaneous notices exceed its quota.
    async fn read_call(&self, call: &Call<'_>, within: Duration) -> Result<Value, CallError> {
        let read = until(Instant::now() + within, async || self.caller.json(call).await, |_| ()).await;
        read.map_err(|stopped| stopped.error_or(CallError::unanswered(call.action, "the time was up")))
    }

    fn parameter(&self, name: &ClusterName) -> String {
        format!("{}/{name}", self.folder)
    }
}

fn joined(names: &[ClusterName]) -> String {
    names.iter().map(ClusterName::as_str).collect::<Vec<_>>().join(",")
}

fn text_of(cluster: &Cluster) -> String {
    json!({ "ca": STANDARD.encode(&cluster.ca), "endpoint": cluster.endpoint }).to_string()
}

fn read(name: &ClusterName, text: &str, region: &str) -> Result<Cluster, Unusable> {
    let kept: Value = serde_json::from_str(text).map_err(|_| Unusable::Unreadable)?;
    let (Some(endpoint), Some(ca)) = (kept["endpoint"].as_str(), kept["ca"].as_str()) else {
        return Err(Unusable::Unreadable);
    };
    if !is_of_eks(endpoint, region) {
        return Err(Unusable::Endpoint(endpoint.to_owned()));
    }
    let ca = STANDARD.decode(ca).map_err(|_| Unusable::Unreadable)?;
    Ok(Cluster { name: name.clone(), endpoint: endpoint.to_owned(), ca })
}

/// Returns `true` if only EKS can create names in the endpoint's domain. Also accepts loopback addresses, which tests use.
fn is_of_eks(endpoint: &str, region: &str) -> bool {
    let Ok(url) = endpoint.parse::<http::Uri>() else { return false };
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    let dual_stack = if region.starts_with("cn-") { "amazonwebservices.com.cn" } else { "aws" };
    let ends = [
        format!(".{region}.eks.{}", dns_suffix(region)),
        // Endpoint of an IPv6 cluster. A customer's own API has a name below another part of api.aws.
        format!(".eks-cluster.{region}.api.{dual_stack}"),
    ];
    url.scheme_str() == Some("https")
        && (ends.iter().any(|end| host.ends_with(end)) || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(endpoint: &str) -> Cluster {
        Cluster { name: ClusterName::new("prod"), endpoint: endpoint.to_owned(), ca: b"a certificate".to_vec() }
    }

    #[test]
    fn written_cluster_is_read_back() {
        let prod = cluster("https://0A1B.gr7.eu-west-1.eks.amazonaws.com");
        assert_eq!(read(&prod.name, &text_of(&prod), "eu-west-1"), Ok(prod));
    }

    #[test]
    fn each_partition_has_its_endpoints() {
        for (region, endpoint) in [
            ("us-east-1", "https://0A1B.gr7.us-east-1.eks.amazonaws.com"),
            ("us-gov-west-1", "https://0A1B.sk1.us-gov-west-1.eks.amazonaws.com"),
            ("cn-north-1", "https://0A1B.yl4.cn-north-1.eks.amazonaws.com.cn"),
            ("eusc-de-east-1", "https://0A1B.gr7.eusc-de-east-1.eks.amazonaws.eu"),
            ("us-east-1", "https://0a1b.eks-cluster.us-east-1.api.aws"),
            ("us-east-1", "https://127.0.0.1:6443"),
        ] {
            assert!(is_of_eks(endpoint, region), "{endpoint}");
        }
    }

    #[test]
    fn forged_endpoint_is_refused() {
        for endpoint in [
            "https://evil.example",
            "https://0A1B.gr7.us-east-1.eks.amazonaws.com.evil.example",
            "https://0A1B.gr7.us-east-1.eks.amazonaws.com@evil.example",
            "https://evil.example/.us-east-1.eks.amazonaws.com",
            "https://evil.example#.us-east-1.eks.amazonaws.com",
            "https://evileks.amazonaws.com",
            "https://0A1B.gr7.eu-west-1.eks.amazonaws.com",
            "https://0a1b.execute-api.us-east-1.api.aws",
            "http://0A1B.gr7.us-east-1.eks.amazonaws.com",
            "https://169.254.169.254",
            "https://10.0.0.1",
            "",
        ] {
            let forged = cluster(endpoint);
            let refused = Err(Unusable::Endpoint(endpoint.to_owned()));
            assert_eq!(read(&forged.name, &text_of(&forged), "us-east-1"), refused, "{endpoint}");
        }
        for text in ["", "{}", r#"{"endpoint":"https://127.0.0.1","ca":"%"}"#] {
            assert_eq!(read(&ClusterName::new("prod"), text, "us-east-1"), Err(Unusable::Unreadable), "{text}");
        }
    }
}

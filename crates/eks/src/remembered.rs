//! Where clusters are, kept in Parameter Store for the processes that EKS does not answer.
//!
//! Each process that starts asks EKS about its cluster, and a storm of notices starts hundreds. EKS answers some ten of them a
//! second. The self-test writes down what EKS says, and a process reads it when EKS throttles it or says nothing.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use spillway_aws_call::{Call, CallError, Caller, Service, dns_suffix};
use spillway_core::cluster::ClusterName;

use crate::clusters::Cluster;

const GET: &str = "ssm:GetParameter";
const PUT: &str = "ssm:PutParameter";

#[derive(Debug)]
pub struct Remembered {
    caller: Caller,
    folder: String,
    region: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Unusable {
    #[error("it is not what a self-test writes")]
    Unreadable,
    #[error("{0} is no endpoint of EKS in this Region")]
    Endpoint(String),
}

impl Remembered {
    #[must_use]
    pub fn new(caller: Caller, stack: &str, region: &str) -> Self {
        Self { caller, folder: format!("/spillway/{stack}/clusters"), region: region.to_owned() }
    }

    /// The cluster as a self-test has written it down. A parameter that cannot be read or used is logged.
    pub(crate) async fn recall(&self, name: &ClusterName) -> Option<Cluster> {
        let parameter = self.parameter(name);
        let text = match self.get(&parameter).await {
            Ok(text) => text?,
            Err(error) => {
                tracing::warn!(error = %error, "cannot read parameter {parameter}, which has the endpoint of cluster {name}");
                return None;
            }
        };
        match read(name, &text, &self.region) {
            Ok(cluster) => Some(cluster),
            Err(error) => {
                tracing::warn!(
                    "parameter {parameter} is not used: {error}. See who wrote it; the next self-test writes it again"
                );
                None
            }
        }
    }

    /// Writes a cluster down, if what stands there is not the same.
    pub(crate) async fn remember(&self, cluster: &Cluster) -> Result<(), CallError> {
        let (parameter, text) = (self.parameter(&cluster.name), text_of(cluster));
        // What could not be used later is not written.
        if read(&cluster.name, &text, &self.region).is_err() || self.get(&parameter).await?.as_ref() == Some(&text) {
            return Ok(());
        }
        let asked = json!({ "Name": parameter, "Value": text, "Type": "String", "Overwrite": true }).to_string();
        self.caller.json(&Call::json(Service::Ssm, PUT, "AmazonSSM.PutParameter", &asked)).await.map(drop)
    }

    async fn get(&self, parameter: &str) -> Result<Option<String>, CallError> {
        let asked = json!({ "Name": parameter }).to_string();
        match self.caller.json(&Call::json(Service::Ssm, GET, "AmazonSSM.GetParameter", &asked)).await {
            Ok(answer) => Ok(answer["Parameter"]["Value"].as_str().map(str::to_owned)),
            Err(error) if error.has_code("ParameterNotFound") => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parameter(&self, name: &ClusterName) -> String {
        format!("{}/{name}", self.folder)
    }
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

/// Whether it is an endpoint that only EKS gives to a cluster of the Region. A loopback address is accepted, because the test bed has
/// its clusters there, and in Lambda only Lambda itself listens there.
fn is_of_eks(endpoint: &str, region: &str) -> bool {
    let Ok(url) = endpoint.parse::<http::Uri>() else { return false };
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    let dual_stack = if region.starts_with("cn-") { "amazonwebservices.com.cn" } else { "aws" };
    let ends = [
        format!(".{region}.eks.{}", dns_suffix(region)),
        // Of an IPv6 cluster. A customer's API has a name below api.aws too, but not this one.
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
    fn a_cluster_is_read_as_it_was_written_down() {
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
    fn a_forged_endpoint_is_refused() {
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

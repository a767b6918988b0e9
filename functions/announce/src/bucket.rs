//! The S3 bucket: one object for each receipt, as the drain function wrote it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};
use spillway_aws_call::{Call, CallError, Caller, Service};
use tokio::time::Instant;

use crate::event::Event;
use crate::retry;

/// Where receipts are kept.
#[derive(Debug)]
pub(crate) struct Bucket {
    name: String,
    aws: Caller,
}

impl Bucket {
    pub(crate) fn new(name: String, aws: Caller) -> Self {
        Self { name, aws }
    }

    /// Puts a receipt, at the latest by `end`. An event that comes twice puts the same object twice. S3 refuses if the bucket
    /// is of another account: somebody else may have taken the name of a bucket that was deleted. A bucket with Object Lock
    /// takes nothing without a checksum.
    pub(crate) async fn put(&self, event: &Event, end: Instant) -> Result<(), CallError> {
        let body = event.document.to_string();
        let checksum = BASE64_STANDARD.encode(digest(&SHA256, body.as_bytes()));
        let headers = vec![
            ("content-type", "application/json"),
            ("x-amz-checksum-sha256", &*checksum),
            ("x-amz-expected-bucket-owner", &*event.account),
        ];
        let call = Call {
            service: Service::S3,
            region: None,
            action: "s3:PutObject",
            method: "PUT",
            path: &format!("/{}/{}", self.name, key(event)),
            headers,
            body: &body,
        };
        retry::call(call.action, end, async || self.aws.call(&call).await).await.map(drop)
    }
}

/// The object's key, by cluster, day and node: `receipts/prod/2026/11/21/ip-10-0-0-1.ec2.internal/<event id>.json`.
fn key(event: &Event) -> String {
    let receipt = &event.receipt;
    let cluster = receipt.cluster.as_deref().unwrap_or("no-cluster");
    let day = receipt.notice.time.map_or_else(|| "no-time".to_owned(), |time| time.strftime("%Y/%m/%d").to_string());
    let node = receipt.node.as_deref().or(receipt.instance.as_deref()).unwrap_or("no-node");
    format!("receipts/{}/{day}/{}/{}.json", plain(cluster), plain(node), plain(&event.id))
}

/// The name without characters that a URL would encode, and never `.` or `..`, which lead to another folder. No name of AWS
/// or Kubernetes has any of these.
fn plain(name: &str) -> String {
    if name.chars().all(|c| c == '.') {
        return "-".repeat(name.len());
    }
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use spillway_receipt::Receipt;

    use super::*;
    use crate::samples::ended;

    #[test]
    fn a_receipt_is_found_by_cluster_day_and_node() {
        let mut event = ended(1, "drained");
        assert_eq!(key(&event), "receipts/prod/2026/11/21/ip-10-0-0-1.eu-west-1.compute.internal/ended-1.json");
        event.receipt = Receipt::default();
        assert_eq!(key(&event), "receipts/no-cluster/no-time/no-node/ended-1.json");
    }

    #[test]
    fn nothing_in_a_name_leads_elsewhere() {
        assert_eq!(plain("../a b?c#d/ü"), "..-a-b-c-d--");
        assert_eq!(["..", "."].map(plain), ["--", "-"], "no other folder");
    }
}

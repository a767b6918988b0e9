//! The S3 bucket: one object for each receipt, as the drain function wrote it.

use reqwest::Method;

use crate::aws::{Aws, AwsError, Call, Service};
use crate::event::Event;

const S3: Service = Service { id: "S3", host: "s3" };

/// Where receipts are kept.
#[derive(Debug)]
pub(crate) struct Bucket {
    name: String,
    aws: Aws,
}

impl Bucket {
    pub(crate) fn new(name: String, aws: Aws) -> Self {
        Self { name, aws }
    }

    /// Puts a receipt. An event that comes twice puts the same object twice. A bucket that is not of the event's account, which
    /// is the function's, gets none: whoever takes the name of one that was deleted would have the receipts.
    pub(crate) async fn put(&self, event: &Event) -> Result<(), AwsError> {
        let call = Call {
            service: S3,
            region: None,
            action: "s3:PutObject",
            method: Method::PUT,
            path: &format!("/{}/{}", self.name, key(event)),
            headers: &[("content-type", "application/json"), ("x-amz-expected-bucket-owner", &event.account)],
            body: event.document.to_string().into_bytes(),
        };
        self.aws.call(&call).await.map(drop)
    }
}

/// Found by cluster, day and node: `receipts/prod/2026/11/21/ip-10-0-0-1.ec2.internal/<event id>.json`.
fn key(event: &Event) -> String {
    let receipt = &event.receipt;
    let cluster = receipt.cluster.as_deref().unwrap_or("no-cluster");
    let day = receipt.notice.time.map_or_else(|| "no-time".to_owned(), |time| time.strftime("%Y/%m/%d").to_string());
    let node = receipt.node.as_deref().or(receipt.instance.as_deref()).unwrap_or("no-node");
    format!("receipts/{}/{day}/{}/{}.json", plain(cluster), plain(node), plain(&event.id))
}

/// Without what would have to be encoded in a URL, or leads elsewhere in a path; no name of AWS or Kubernetes has any of it.
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

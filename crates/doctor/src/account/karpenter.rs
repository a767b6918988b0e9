//! Checks whether Karpenter has running instances in the account.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::Filter;
use spillway_drainer::aws::{self, CallError};
use tokio::time::Instant;

const DESCRIBE: &str = "ec2:DescribeInstances";
/// Tag key that Karpenter, but not EKS Auto Mode, sets on instances.
const TAG: &str = "karpenter.k8s.aws/ec2nodeclass";
/// Page size: one instance is enough, but EC2 accepts no number below 5.
const PAGE_SIZE: i32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Karpenter {
    HasNodes,
    HasNone,
}

pub(super) async fn run_check(ec2: &Client, end: Instant) -> Result<Karpenter, CallError> {
    let filter = |name: &str, value: &str| Filter::builder().name(name).values(value).build();
    let some = async || {
        let call = ec2.describe_instances().filters(filter("tag-key", TAG));
        let call = call.filters(filter("instance-state-name", "running")).max_results(PAGE_SIZE);
        call.send().await.map_err(|error| CallError::new(DESCRIBE, error))
    };
    let found = aws::until(DESCRIBE, end, some).await?;
    Ok(if found.reservations().is_empty() { Karpenter::HasNone } else { Karpenter::HasNodes })
}

//! Finds instances with a wrong tag of Karpenter or EKS Auto Mode, because Spillway may ignore notices for such instances.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::Client;
use spillway_core::cluster::ClusterName;
use spillway_core::instance::{Instance, ManagedBy, Membership, OWNER_TAGS, managed_by, membership};
use spillway_drainer::aws::ec2::{DESCRIBE, tagged};
use spillway_drainer::aws::{self, CallError};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use super::fleet::NodeName;
use crate::catalogue::FindingId;
use crate::report::{Finding, Severity, counted};
use crate::retry_end;

const IN_A_COMMAND: usize = 20;

pub(super) async fn run_check(
    ec2: &Client,
    cluster: &ClusterName,
    unowned: &BTreeSet<NodeName>,
    region: &str,
    end: Instant,
) -> Vec<Finding> {
    let names: Vec<&str> = unowned.iter().map(AsRef::as_ref).collect();
    match aws::until(DESCRIBE, retry_end(end), || tagged(ec2, &OWNER_TAGS, &names)).await {
        Ok(instances) => findings(&instances, cluster, unowned, region),
        Err(error) => vec![unknown(&error)],
    }
}

/// Returns at most two findings about wrongly tagged instances: one about those that Spillway ignores, one about those it drains.
fn findings(instances: &[Instance], cluster: &ClusterName, unowned: &BTreeSet<NodeName>, region: &str) -> Vec<Finding> {
    let mut tagged = BTreeMap::<bool, Tagged<'_>>::new();
    // Instances of another VPC may have the same DNS names.
    let of_cluster = instances.iter().filter(|one| membership(&one.tags) == Membership::In(cluster.clone()));
    for instance in of_cluster {
        let is_ignored = match managed_by(&instance.tags) {
            ManagedBy::Karpenter | ManagedBy::AutoMode => true,
            ManagedBy::SelfManaged => false,
            ManagedBy::ManagedNodeGroup | ManagedBy::Fargate | ManagedBy::Hybrid => continue,
        };
        let (id, dns_name) = (instance.id.as_str(), instance.private_dns_name.as_deref());
        let Some(node) = unowned.iter().find(|node| Some(node.as_ref()) == dns_name || node.starts_with(id)) else {
            continue;
        };
        let all = tagged.entry(is_ignored).or_default();
        all.nodes.insert(node);
        all.ids.push(id);
        all.tags.extend(OWNER_TAGS.iter().filter(|tag| instance.tags.contains_key(**tag)));
    }
    tagged.into_iter().map(|(is_ignored, tagged)| finding(is_ignored, &tagged, region)).collect()
}

#[derive(Default)]
struct Tagged<'a> {
    nodes: BTreeSet<&'a NodeName>,
    ids: Vec<&'a str>,
    tags: BTreeSet<&'static str>,
}

fn finding(is_ignored: bool, Tagged { nodes, ids, tags }: &Tagged<'_>, region: &str) -> Finding {
    let fault =
        "a tag of the instance names Karpenter or EKS Auto Mode, but the node has neither their label nor a NodeClaim";
    let (severity, what) = if is_ignored {
        (Severity::Fail, format!("{fault}: notices are ignored, and the node is not drained"))
    } else {
        let effect = "The instance is in an Auto Scaling group, so that the tag is ignored and the node is drained";
        (Severity::Warn, format!("{fault}. {effect}"))
    };
    let to_do = "remove the tags from the instances and from their launch template; find their author in CloudTrail (CreateTags)";
    let (ids, tags): (Vec<_>, Vec<_>) =
        (ids.iter().take(IN_A_COMMAND).copied().collect(), tags.iter().map(|tag| format!("Key={tag}")).collect());
    let command =
        format!("aws ec2 delete-tags --region {region} --resources {} --tags {}", ids.join(" "), tags.join(" "));
    Finding::new(FindingId::TagWithoutLabel, severity, counted(nodes.len(), "node"), what, to_do)
        .on(nodes.iter().copied())
        .with_command(command)
}

fn unknown(error: &CallError) -> Finding {
    let what = format!("have unknown tags, which may make Spillway ignore notices: {}", chain(error));
    Finding::new(FindingId::TagWithoutLabel, Severity::Unknown, "the nodes' instances", what, "run the doctor again")
}

#[cfg(test)]
mod tests {
    use spillway_core::test_support::{instance, tags};

    use super::*;

    const ID: &str = "i-0123456789abcdef0";

    fn found(node: &str, pairs: &[(&str, &str)]) -> Vec<(Severity, String)> {
        let mut tags = tags(pairs);
        tags.entry("aws:eks:cluster-name".to_owned()).or_insert_with(|| "prod".to_owned());
        let dns_name = Some("ip-10-0-0-1.ec2.internal".to_owned());
        let instance = Instance { tags, private_dns_name: dns_name, ..instance() };
        let unowned = BTreeSet::from([NodeName::from(node), NodeName::from("n-2")]);
        let findings = findings(&[instance], &ClusterName::new("prod"), &unowned, "us-east-1");
        let command = |tag: &str| format!("aws ec2 delete-tags --region us-east-1 --resources {ID} --tags Key={tag}");
        let severity_and_nodes = |finding: Finding| {
            assert_eq!(finding.command, Some(command(pairs[0].0)));
            (finding.severity, finding.nodes.join(" "))
        };
        findings.into_iter().map(severity_and_nodes).collect()
    }

    #[test]
    fn tag_of_another_manager_fails_for_each_form_of_node_name() {
        for tag in OWNER_TAGS {
            for node in ["ip-10-0-0-1.ec2.internal", ID, &format!("{ID}.ec2.internal")] {
                assert_eq!(found(node, &[(tag, "x")]), [(Severity::Fail, node.to_owned())], "{tag}");
            }
        }
        assert_eq!(found("ip-10-0-0-2.ec2.internal", &[("karpenter.sh/nodepool", "x")]), []);
    }

    #[test]
    fn tag_in_an_auto_scaling_group_is_only_a_warning() {
        let tag = ("karpenter.sh/nodepool", "x");
        assert_eq!(found(ID, &[tag, ("aws:autoscaling:groupName", "workers")]), [(Severity::Warn, ID.to_owned())]);
        assert_eq!(found(ID, &[tag, ("eks:nodegroup-name", "blue")]), []);
        assert_eq!(found(ID, &[tag, ("aws:eks:cluster-name", "stage")]), []);
    }
}

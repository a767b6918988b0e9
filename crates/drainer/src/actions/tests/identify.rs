use spillway_core::cluster::ClusterName;
use spillway_core::instance::Instance;
use spillway_eks::UnlistedNames;
use spillway_notice::Notice;

use super::*;
use crate::actions::identify::{Identified, identify};

const KNOWN: [(&str, &str); 1] = [("SPILLWAY_CLUSTERS", "prod")];
const NAMED_BY_DNS: &str = "ip-10-0-0-1.ec2.internal";
const CSI_NODES: &str = "GET /apis/storage.k8s.io/v1/csinodes";

/// EC2 fails to the end, as for the instances of a zone that is down.
fn zone_is_down() -> Expected {
    call("DescribeInstances").says(500, ec2_error("InternalError", "An internal error has occurred")).repeated()
}

fn throttled() -> Expected {
    call("DescribeInstances").says(503, ec2_error("RequestLimitExceeded", "Request limit exceeded."))
}

/// No node has the instance's id as its name.
fn not_by_name() -> [Expected; 2] {
    let no = |path: String| call(format!("GET {path}")).says(404, status(404, "NotFound", "nodes"));
    [no(NODE_PATH.to_owned()), no(format!("{NODE_PATH}.ec2.internal"))]
}

fn csi_nodes(nodes: &[Value]) -> Expected {
    call(CSI_NODES).with("limit=500").says(200, list("CSINode", nodes))
}

fn csi_node(instance: &str) -> Value {
    let s3 = json!({"name": "s3.csi.aws.com", "nodeID": NAMED_BY_DNS, "topologyKeys": null});
    let ebs = json!({"name": "ebs.csi.aws.com", "nodeID": instance, "topologyKeys": ["topology.ebs.csi.aws.com/zone"]});
    json!({"metadata": {"name": NAMED_BY_DNS}, "spec": {"drivers": [s3, ebs]}})
}

/// No CSI driver names the instance.
fn not_by_driver() -> Expected {
    let mut none = csi_node("i-0fedcba9876543210");
    none["spec"]["drivers"] = json!(null);
    csi_nodes(&[none])
}

fn named_by_dns(instance: &str) -> Value {
    let mut node = node();
    node["metadata"]["name"] = json!(NAMED_BY_DNS);
    node["spec"]["providerID"] = json!(format!("aws:///us-east-1a/{instance}"));
    node
}

/// Spot notice of an instance in that zone.
fn in_zone(zone: Option<&str>) -> Notice {
    Notice { zone: zone.map(str::to_owned), ..Case::spot().notice }
}

async fn identified(context: &TestContext, notice: &Notice) -> Result<Option<Identified>, Failure> {
    identify(context, notice, (notice.time, Instant::now() + Duration::from_secs(20))).await
}

async fn found_by_node(context: &TestContext, notice: &Notice) -> Instance {
    match identified(context, notice).await.unwrap() {
        Some(Identified::ByNode(instance, cluster)) if cluster.as_str() == "prod" => instance,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn no_cluster_is_searched_while_ec2_answers() {
    let context = TestContext::new(&KNOWN, [], [described("running", &[])]);
    assert!(matches!(identified(&context, &Case::spot().notice).await, Ok(Some(Identified::ByEc2(_)))));
}

#[tokio::test(start_paused = true)]
async fn clusters_are_searched_after_five_seconds_without_ec2() {
    for silent in [zone_is_down(), throttled().repeated()] {
        let context = TestContext::new(&KNOWN, [read_node(node())], [silent]);
        let began = Instant::now();
        let instance = found_by_node(&context, &Case::spot().notice).await;
        assert_eq!((instance.private_dns_name.as_deref(), instance.zone.as_str()), (Some(NODE), "us-east-1a"));
        assert_eq!(began.elapsed().as_secs(), 5);
    }
}

/// The scripted API server fails a list of nodes where a CSI driver names the instance, and a list of all zones where the notice
/// names one.
#[tokio::test(start_paused = true)]
async fn node_is_found_by_its_csi_driver_zone_or_a_list() {
    let own = || list("Node", &[named_by_dns(NODE)]);
    let by_driver = [
        csi_nodes(&[csi_node("i-0fedcba9876543210"), csi_node(NODE)]),
        call(format!("GET /api/v1/nodes/{NAMED_BY_DNS}")).says(200, named_by_dns(NODE)),
    ];
    let of_zone = call("GET /api/v1/nodes").with("topology.kubernetes.io%2Fzone%3Dus-east-1a").says(200, own());
    let refused = call(CSI_NODES).says(403, status(403, "Forbidden", "csinodes"));
    for (zone, api) in [
        (None, by_driver),
        (Some("us-east-1a"), [not_by_driver(), of_zone]),
        (None, [refused, call("GET /api/v1/nodes").says(200, own())]),
    ] {
        let context = TestContext::new(&KNOWN, not_by_name().into_iter().chain(api), [zone_is_down()]);
        let instance = found_by_node(&context, &in_zone(zone)).await;
        assert_eq!(instance.private_dns_name.as_deref(), Some(NAMED_BY_DNS));
    }
}

#[tokio::test(start_paused = true)]
async fn ec2_is_retried_to_the_end_without_the_instances_node() {
    let of_zone = call("GET /api/v1/nodes").with("topology.kubernetes.io%2Fzone%3Dus-east-1a");
    let of_another = list("Node", &[named_by_dns("i-0fedcba9876543210")]);
    for (zone, nodes) in [
        (Some("us-east-1a"), of_zone.says(200, list("Node", &[]))),
        (None, call("GET /api/v1/nodes").says(200, of_another)),
    ] {
        let api = not_by_name().into_iter().chain([not_by_driver(), nodes]);
        let context = TestContext::new(&KNOWN, api, [zone_is_down()]);
        let failure = identified(&context, &in_zone(zone)).await.unwrap_err();
        assert!(failure.text().contains("ec2:DescribeInstances"), "{}", failure.text());
    }
    let no_cluster = TestContext::new(&[], [], [zone_is_down()]);
    identified(&no_cluster, &Case::spot().notice).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn stored_clusters_are_searched_despite_throttled_reads() {
    let ca = json!({"ca": "Y2E=", "endpoint": "https://0A1B.gr7.us-east-1.eks.amazonaws.com"}).to_string();
    let found = json!({"Parameters": [{"Name": "/spillway/spillway/clusters/prod", "Value": ca}]});
    let names = json!({"Parameter": {"Value": "prod,s-2,s-3,s-4,s-5,s-6,s-7,s-8,s-9,s-10,s-11"}});
    // The script has no call of EKS.
    let aws = [
        zone_is_down().at_any_time(),
        call("GetParameter").with("/spillway/spillway/clusters/_names").says(400, json_error("ThrottlingException")),
        call("GetParameter").with("/spillway/spillway/clusters/_names").says(200, names),
        call("GetParameters").with("s-10").without("s-11").says(400, json_error("ThrottlingException")),
        call("GetParameters").with("s-10").without("s-11").says(200, found),
        call("GetParameters").with("s-11").says(200, json!({"Parameters": []})),
    ];
    let context = TestContext::new(&[("SPILLWAY_STACK", "spillway")], [read_node(node())], aws);
    let instance = found_by_node(&context, &Case::spot().notice).await;
    assert_eq!(instance.private_dns_name.as_deref(), Some(NODE));
}

#[tokio::test(start_paused = true)]
async fn self_tests_write_three_parameters_a_second() {
    let written = |name: &str| call("PutParameter").with(name).says(200, json!({"Version": 1}));
    let missing = || call("GetParameter").says(400, json_error("ParameterNotFound"));
    let known = |names: &str| call("GetParameter").says(200, json!({"Parameter": {"Value": names}}));
    let first = [missing(), written("prod,stage"), known("old"), written("new,old")];
    let aws = first.into_iter().chain([known("new,old"), missing(), written("prod")]);
    let context = TestContext::new(&[("SPILLWAY_STACK", "spillway")], [], aws);
    let (clusters, began) = (&context.access.clusters, Instant::now());
    for (names, others) in [
        (&["stage", "prod"][..], UnlistedNames::Drop),
        (&["new"], UnlistedNames::Keep),
        (&["new"], UnlistedNames::Keep),
        (&["prod"], UnlistedNames::Drop),
    ] {
        let names: Vec<_> = names.iter().map(|name| ClusterName::new(*name)).collect();
        clusters.store_names(&names, others).await.unwrap();
    }
    assert!(began.elapsed() >= Duration::from_secs(1), "three writes: {:?}", began.elapsed());
}

/// Retries end after 30 s, and at the first throttled call: the script has only one.
#[tokio::test(start_paused = true)]
async fn running_instance_is_described_for_half_a_minute() {
    let notice = Case::of(Kind::Running, Deadline::Open).notice;
    for (answer, seconds) in [(zone_is_down(), 30), (throttled(), 0)] {
        let context = TestContext::new(&KNOWN, [], [answer]);
        let (began, in_ten_minutes) = (Instant::now(), Instant::now() + Duration::from_mins(10));
        let failure = identify(&context, &notice, (notice.time, in_ten_minutes)).await.unwrap_err();
        assert_eq!(began.elapsed().as_secs(), seconds);
        assert_eq!(failure.error_type() == "AwsThrottled", seconds == 0, "{failure:?}");
    }
}

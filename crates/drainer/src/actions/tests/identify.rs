use std::time::Duration;

use serde_json::{Value, json};
use spillway_core::cluster::ClusterName;
use spillway_core::instance::Instance;
use spillway_eks::OtherNames;
use spillway_notice::{Deadline, Kind, Notice};
use tokio::time::Instant;

use crate::actions::identify::{Identified, identify};
use crate::doubles::aws::json_error;
use crate::failure::Failure;
use crate::test_support::api_server::{NODE, NODE_PATH, list, node, status};
use crate::test_support::aws::{described, ec2_error};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

const KNOWN: [(&str, &str); 1] = [("SPILLWAY_CLUSTERS", "prod")];
const NAMED_BY_DNS: &str = "ip-10-0-0-1.ec2.internal";

/// EC2 fails for as long as anybody asks, as for the instances of a zone that is down.
fn zone_is_down() -> Expected {
    call("DescribeInstances").says(500, ec2_error("InternalError", "An internal error has occurred")).repeated()
}

const CSI_NODES: &str = "GET /apis/storage.k8s.io/v1/csinodes";

/// No node has the instance's id for its name.
fn not_by_name() -> [Expected; 2] {
    let no = |path: String| call(format!("GET {path}")).says(404, status(404, "NotFound", "nodes"));
    [no(NODE_PATH.to_owned()), no(format!("{NODE_PATH}.ec2.internal"))]
}

/// Nor has a CSI driver.
fn not_by_id() -> [Expected; 3] {
    let [first, second] = not_by_name();
    let mut none = csi_node("i-0fedcba9876543210");
    none["spec"]["drivers"] = json!(null);
    [first, second, call(CSI_NODES).says(200, list("CSINode", &[none]))]
}

fn csi_node(instance: &str) -> Value {
    let s3 = json!({"name": "s3.csi.aws.com", "nodeID": NAMED_BY_DNS, "topologyKeys": null});
    let ebs = json!({"name": "ebs.csi.aws.com", "nodeID": instance, "topologyKeys": ["topology.ebs.csi.aws.com/zone"]});
    json!({"metadata": {"name": NAMED_BY_DNS}, "spec": {"drivers": [s3, ebs]}})
}

fn with_provider_id(provider_id: &str) -> Value {
    let mut node = node();
    node["metadata"]["name"] = json!(NAMED_BY_DNS);
    node["spec"]["providerID"] = json!(provider_id);
    node
}

async fn identified(context: &TestContext, notice: &Notice) -> Result<Option<Identified>, Failure> {
    identify(context, notice, (notice.time, Instant::now() + Duration::from_secs(20))).await
}

fn by_node(identified: Option<Identified>) -> Instance {
    match identified {
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
async fn a_node_with_the_instances_id_for_its_name_is_found_when_ec2_fails_for_five_seconds() {
    let api = [call(format!("GET {NODE_PATH}")).says(200, node())];
    let context = TestContext::new(&KNOWN, api, [zone_is_down()]);
    let began = Instant::now();
    let instance = by_node(identified(&context, &Case::spot().notice).await.unwrap());
    assert_eq!((instance.private_dns_name.as_deref(), instance.zone.as_str()), (Some(NODE), "us-east-1a"));
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn throttled_ec2_is_given_five_seconds_before_a_search() {
    let api = [call(format!("GET {NODE_PATH}")).says(200, node())];
    let throttled = ec2_error("RequestLimitExceeded", "Request limit exceeded.");
    let context = TestContext::new(&KNOWN, api, [call("DescribeInstances").says(503, throttled).repeated()]);
    let began = Instant::now();
    let instance = by_node(identified(&context, &Case::spot().notice).await.unwrap());
    assert_eq!(instance.private_dns_name.as_deref(), Some(NODE));
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_node_by_another_name_is_found_among_those_of_the_zone_that_the_notice_names() {
    let mut case = Case::spot();
    case.notice.zone = Some("us-east-1a".to_owned());
    let own = with_provider_id("aws:///us-east-1a/i-0123456789abcdef0");
    let of_zone = call("GET /api/v1/nodes").with("topology.kubernetes.io%2Fzone%3Dus-east-1a");
    let api = not_by_id().into_iter().chain([of_zone.says(200, list("Node", &[own]))]);
    let context = TestContext::new(&KNOWN, api, [zone_is_down()]);
    let instance = by_node(identified(&context, &case.notice).await.unwrap());
    assert_eq!(instance.private_dns_name.as_deref(), Some(NAMED_BY_DNS));
}

/// The scripted API server fails a list of nodes.
#[tokio::test(start_paused = true)]
async fn node_of_a_csi_driver_is_found_without_a_list_of_nodes() {
    let own = with_provider_id("aws:///us-east-1a/i-0123456789abcdef0");
    let nodes = [csi_node("i-0fedcba9876543210"), csi_node(NODE)];
    let api = not_by_name().into_iter().chain([
        call(CSI_NODES).with("limit=500").says(200, list("CSINode", &nodes)),
        call(format!("GET /api/v1/nodes/{NAMED_BY_DNS}")).says(200, own),
    ]);
    let context = TestContext::new(&KNOWN, api, [zone_is_down()]);
    let instance = by_node(identified(&context, &Case::spot().notice).await.unwrap());
    assert_eq!(instance.private_dns_name.as_deref(), Some(NAMED_BY_DNS));
}

#[tokio::test(start_paused = true)]
async fn missing_right_to_csi_nodes_falls_back_to_nodes() {
    let own = with_provider_id("aws:///us-east-1a/i-0123456789abcdef0");
    let refused = call(CSI_NODES).says(403, status(403, "Forbidden", "csinodes"));
    let all = call("GET /api/v1/nodes").says(200, list("Node", &[own]));
    let api = not_by_name().into_iter().chain([refused, all]);
    let context = TestContext::new(&KNOWN, api, [zone_is_down()]);
    let instance = by_node(identified(&context, &Case::spot().notice).await.unwrap());
    assert_eq!(instance.private_dns_name.as_deref(), Some(NAMED_BY_DNS));
}

/// The scripted API server fails a list of all nodes.
#[tokio::test(start_paused = true)]
async fn instance_with_a_known_zone_is_searched_in_it_alone() {
    let mut case = Case::spot();
    case.notice.zone = Some("us-east-1a".to_owned());
    let of_zone = call("GET /api/v1/nodes").with("topology.kubernetes.io%2Fzone%3Dus-east-1a");
    let api = not_by_id().into_iter().chain([of_zone.says(200, list("Node", &[]))]);
    let context = TestContext::new(&KNOWN, api, [zone_is_down()]);
    assert!(identified(&context, &case.notice).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_instance_is_not_taken_and_ec2_is_asked_to_the_end() {
    let another = with_provider_id("aws:///us-east-1a/i-0fedcba9876543210");
    let api = not_by_id().into_iter().chain([call("GET /api/v1/nodes").says(200, list("Node", &[another]))]);
    let context = TestContext::new(&KNOWN, api, [zone_is_down()]);
    let failure = identified(&context, &Case::spot().notice).await.unwrap_err();
    assert!(failure.text().contains("ec2:DescribeInstances"), "{}", failure.text());
}

#[tokio::test(start_paused = true)]
async fn node_of_a_hook_or_a_stopping_instance_is_searched() {
    for case in [Case::held(Kind::Terminate), Case::of(Kind::Stopping, Deadline::Unknown)] {
        let api = [call(format!("GET {NODE_PATH}")).says(200, node())];
        let context = TestContext::new(&KNOWN, api, [zone_is_down()]);
        let instance = by_node(identified(&context, &case.notice).await.unwrap());
        assert_eq!(instance.private_dns_name.as_deref(), Some(NODE));
    }
}

#[tokio::test(start_paused = true)]
async fn remembered_clusters_are_searched_ten_parameters_a_call() {
    let ca = json!({"ca": "Y2E=", "endpoint": "https://0A1B.gr7.us-east-1.eks.amazonaws.com"}).to_string();
    let parameter = |name: &str| json!({"Name": format!("/spillway/spillway/clusters/{name}"), "Value": ca});
    let names = "prod,s-2,s-3,s-4,s-5,s-6,s-7,s-8,s-9,s-10,s-11";
    let aws = [
        zone_is_down().at_any_time(),
        call("GetParameter")
            .with("/spillway/spillway/clusters/_names")
            .says(200, json!({"Parameter": {"Value": names}}).to_string()),
        call("GetParameters")
            .with("s-10")
            .without("s-11")
            .says(200, json!({"Parameters": [parameter("prod")]}).to_string()),
        call("GetParameters").with("s-11").says(200, json!({"Parameters": []}).to_string()),
    ];
    // EKS is not asked: the script has no such call.
    let api = [call(format!("GET {NODE_PATH}")).says(200, node())];
    let context = TestContext::new(&[("SPILLWAY_STACK", "spillway")], api, aws);
    let instance = by_node(identified(&context, &Case::spot().notice).await.unwrap());
    assert_eq!(instance.private_dns_name.as_deref(), Some(NODE));
}

#[tokio::test(start_paused = true)]
async fn self_tests_write_three_parameters_a_second() {
    let written = |name: &str| call("PutParameter").with(name).says(200, json!({"Version": 1}).to_string());
    let missing = || call("GetParameter").says(400, json_error("ParameterNotFound"));
    let known = json!({"Parameter": {"Value": "new,old"}}).to_string();
    let aws = [
        missing(),
        written("prod,stage"),
        call("GetParameter").says(200, json!({"Parameter": {"Value": "old"}}).to_string()),
        written("new,old"),
        call("GetParameter").says(200, known),
        missing(),
        written("prod"),
    ];
    let context = TestContext::new(&[("SPILLWAY_STACK", "spillway")], [], aws);
    let (clusters, began) = (&context.access.clusters, Instant::now());
    let names = |names: &[&str]| names.iter().map(|name| ClusterName::new(*name)).collect::<Vec<_>>();
    clusters.remember_names(&names(&["stage", "prod"]), OtherNames::Drop).await.unwrap();
    clusters.remember_names(&names(&["new"]), OtherNames::Keep).await.unwrap();
    clusters.remember_names(&names(&["new"]), OtherNames::Keep).await.unwrap();
    clusters.remember_names(&names(&["prod"]), OtherNames::Drop).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1), "three writes: {:?}", began.elapsed());
}

/// Any request to the API server would fail the test.
#[tokio::test(start_paused = true)]
async fn where_a_tag_decides_and_where_no_cluster_is_known_only_ec2_is_asked() {
    for settings in [&[KNOWN[0], ("SPILLWAY_MANAGED_TAG", "drain=yes")][..], &[]] {
        let context = TestContext::new(settings, [], [zone_is_down()]);
        assert!(identified(&context, &Case::spot().notice).await.is_err(), "{settings:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn running_instance_is_asked_about_for_half_a_minute() {
    let context = TestContext::new(&KNOWN, [], [zone_is_down()]);
    let (began, in_ten_minutes) = (Instant::now(), Instant::now() + Duration::from_mins(10));
    let notice = Case::of(Kind::Running, Deadline::Open).notice;
    assert!(identify(&context, &notice, (notice.time, in_ten_minutes)).await.is_err());
    assert_eq!(began.elapsed().as_secs(), 30);
}

/// A second call would fail the test.
#[tokio::test(start_paused = true)]
async fn running_instance_is_given_up_at_the_first_throttle() {
    let throttled = ec2_error("RequestLimitExceeded", "Request limit exceeded.");
    let context = TestContext::new(&KNOWN, [], [call("DescribeInstances").says(503, throttled)]);
    let failure = identified(&context, &Case::of(Kind::Running, Deadline::Open).notice).await.unwrap_err();
    assert_eq!(failure.error_type(), "AwsThrottled");
}

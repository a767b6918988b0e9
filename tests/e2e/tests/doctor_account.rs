//! The doctor: what is broken in the account is found and named, one thing at a time, and nothing is changed.
//!
//! Rules and groups are everybody's in this world, so this is the only test in it.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use spillway_bed::World;
use spillway_bed::aws::{Fault, Hook, InstanceRequest};
use spillway_bed::lambda::Lambda;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{function, sample, world};

/// Every kind of notice is wanted, so that every rule is missed.
const WANTED: [(&str, &str); 2] = [("SPILLWAY_CORDON_ON", "rebalance"), ("SPILLWAY_LAUNCH", "ABANDON")];

/// What is broken, what is found then.
struct Account {
    world: &'static World,
    lambda: Lambda,
}

impl Account {
    /// An account in which nothing is broken.
    async fn set() -> Self {
        Self::set_with("doctor-account", &WANTED).await
    }

    /// The same for a function of that name and with these settings.
    async fn set_with(name: &str, settings: &[(&str, &str)]) -> Self {
        let world = world().await;
        let account = Self { world, lambda: function(world, name, settings).await };
        account.put_group(&[hook("spillway")]).await;
        account
    }

    /// A group with nodes in the world's cluster, that has these hooks and no other.
    async fn put_group(&self, hooks: &[Hook]) {
        let tag = format!("kubernetes.io/cluster/{}", self.world.cluster);
        let group = self.world.aws_side().put_tagged_group("workers", hooks, &[(tag.as_str(), "owned")]).await;
        group.expect("the group is put");
    }

    async fn deny(&self, service: &str, action: &str) {
        let code = match service {
            "ec2" => "UnauthorizedOperation",
            "autoscaling" => "AccessDenied",
            _ => "AccessDeniedException",
        };
        let fault = Fault {
            status: Some(403),
            code: Some(code.to_owned()),
            message: Some(format!("not authorized to perform: {service}:{action}")),
            ..Fault::of(self.lambda.access_key_id(), service, action)
        };
        self.world.aws_side().add_fault(&fault).await.expect("a fault");
    }

    async fn allow_all(&self) {
        self.world.aws_side().clear_faults(self.lambda.access_key_id()).await.expect("no fault");
    }

    /// What the doctor finds in the account, as `severity id object`.
    async fn findings(&self) -> Vec<String> {
        let outcome = self.lambda.invoke(&sample("doctor")).await;
        let report = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error:?} {outcome:#?}"));
        let checks = report["checks"].as_array().expect("checks").iter();
        let of_account = [
            "clusters",
            "dry-run",
            "aws-rights",
            "rules",
            "event-sources",
            "drainers",
            "concurrency",
            "hooks",
            "sign-in",
            "nth",
        ];
        let findings = checks
            .filter(|check| of_account.iter().any(|id| check["id"] == *id))
            .flat_map(|check| check["findings"].as_array().into_iter().flatten());
        findings.map(told).collect()
    }
}

/// A finding in short. It says what is so and what to do.
fn told(finding: &Value) -> String {
    let text =
        |key: &str| finding[key].as_str().filter(|text| !text.is_empty()).unwrap_or_else(|| panic!("{finding:#}"));
    assert!(text("what").len() > 20 && !text("to_do").is_empty(), "{finding:#}");
    format!("{} {} {}", text("severity"), text("id"), text("object"))
}

/// A terminate hook as docs/install.md has it.
fn hook(name: &str) -> Hook {
    Hook { default_result: "CONTINUE".to_owned(), ..Hook::terminate(name) }
}

#[tokio::test]
async fn each_thing_that_is_broken_in_the_account_is_found_and_named() {
    let account = Account::set().await;
    assert_eq!(account.findings().await, [] as [&str; 0], "nothing is broken");

    rules_that_are_off(&account).await;
    rights_that_are_missing(&account).await;
    hooks_that_do_not_wait(&account).await;
    second_drainers(&account).await;
    dry_run().await;
    clusters_that_nobody_knows(&account).await;

    assert_eq!(account.findings().await, [] as [&str; 0], "all is mended");
    let aws = account.world.aws_side();
    let key = account.lambda.access_key_id();
    assert!(aws.schedules(key).await.expect("schedules").is_empty());
    assert!(aws.take_deliveries(key).await.expect("deliveries").is_empty(), "the function was not invoked");
    assert!(aws.failures().await.expect("the queue").is_empty());

    foreign_event_source(account.world).await;
    what_the_settings_leave_out(account.world).await;
}

/// A queue of somebody invokes the function by an event source mapping.
async fn foreign_event_source(world: &World) {
    let account = Account::set_with("doctor-mapped", &WANTED).await;
    let queue = "arn:aws:sqs:us-east-1:999999999999:theirs";
    world.aws_side().create_mapping("doctor-mapped", queue).await.expect("a mapping");
    let found = account.findings().await;
    assert!(found.len() == 1 && found[0].starts_with("fail foreign-event-source event source mapping "), "{found:?}");
}

/// The cluster that was made last, and spot interruptions.
async fn what_the_settings_leave_out(world: &World) {
    world.aws_side().put_cluster("made-last", "https://127.0.0.1:1", "", None).await.expect("EKS has it");
    let [rebalance, launch] = WANTED;
    let settings = [
        rebalance,
        launch,
        ("SPILLWAY_CLUSTERS", world.cluster.as_str()),
        ("SPILLWAY_DRAIN_ON", "capacity,maintenance,state-change,terminate"),
    ];
    let account = Account::set_with("doctor-left-out", &settings).await;
    let expected =
        ["info cluster-not-named 1 EKS cluster", "warn spot-switched-off the parameters DrainOn and CordonOn"];
    assert_eq!(account.findings().await, expected);
}

/// Each rule of the template that brings a notice.
async fn rules_that_are_off(account: &Account) {
    let aws = account.world.aws_side();
    for rule in
        ["DrainInterruption", "DrainCapacityBlockAndRebalance", "DrainScheduledMaintenance", "DrainLifecycleAction"]
    {
        aws.switch_rule(rule, "DISABLED").await.expect("there is such a rule");
        assert_eq!(account.findings().await, [format!("fail rule-disabled rule {rule}")]);
        aws.switch_rule(rule, "ENABLED").await.expect("it is still there");
    }
}

/// Each call of the template's role: a drain's, and those that only the doctor makes.
async fn rights_that_are_missing(account: &Account) {
    let cluster = &account.world.cluster;
    let mut tried = BTreeSet::new();
    for (service, action, found) in [
        ("ec2", "DescribeInstances", vec!["fail aws-right-missing"]),
        ("ec2", "DescribeInstanceStatus", vec!["fail aws-right-missing"]),
        ("eks", "DescribeCluster", vec!["fail aws-right-missing", "fail unknown-cluster"]),
        ("eks", "ListClusters", vec!["unknown clusters-unknown"]),
        ("autoscaling", "CompleteLifecycleAction", vec!["fail aws-right-missing"]),
        ("autoscaling", "RecordLifecycleActionHeartbeat", vec!["fail aws-right-missing"]),
        ("autoscaling", "DescribeLifecycleHooks", vec!["fail aws-right-missing", "unknown groups-unknown"]),
        ("autoscaling", "DescribeAutoScalingGroups", vec!["unknown groups-unknown"]),
        ("events", "PutEvents", vec!["fail aws-right-missing"]),
        ("lambda", "Invoke", vec!["fail aws-right-missing"]),
        ("events", "ListRules", vec!["unknown rules-unknown"]),
        ("events", "ListTargetsByRule", vec!["unknown rules-unknown"]),
        ("lambda", "GetAccountSettings", vec!["unknown concurrency-unknown"]),
        ("lambda", "ListEventSourceMappings", vec!["unknown event-sources-unknown"]),
        ("scheduler", "ListSchedules", vec!["fail aws-right-missing"]),
        ("scheduler", "GetSchedule", vec!["fail aws-right-missing"]),
        ("scheduler", "UpdateSchedule", vec!["fail aws-right-missing"]),
        ("scheduler", "DeleteSchedule", vec!["fail aws-right-missing"]),
    ] {
        account.deny(service, action).await;
        let expected: Vec<_> = found
            .into_iter()
            .map(|found| match found {
                "fail unknown-cluster" => format!("{found} cluster {cluster}"),
                _ if action == "Invoke" => format!("{found} lambda:InvokeFunction"),
                _ => format!("{found} {service}:{action}"),
            })
            .collect();
        assert_eq!(account.findings().await, expected);
        account.allow_all().await;
        tried.insert(format!("{service}:{action}"));
    }
    // It would make a schedule; one is called with a setting only; and where a cluster is gets remembered for bad hours only.
    let not_found = ["scheduler:CreateSchedule", "autoscaling:DescribeTags"];
    let remembers = ["ssm:GetParameter", "ssm:GetParameters", "ssm:PutParameter"];
    tried.extend(not_found.into_iter().chain(remembers).map(str::to_owned));
    assert_eq!(tried, spillway_e2e::allowed_calls(), "every right is tried");
}

async fn hooks_that_do_not_wait(account: &Account) {
    account.put_group(&[]).await;
    assert_eq!(account.findings().await, ["fail hook-missing Auto Scaling group workers"]);

    account.put_group(&[hook("spillway").heartbeat_timeout(Duration::from_secs(30))]).await;
    let short = "warn hook-timeout-short hook spillway of Auto Scaling group workers";
    assert_eq!(account.findings().await, [short]);

    account.put_group(&[hook("spillway"), Hook::terminate("dns")]).await;
    let left = "warn hook-left-to-others hook dns of Auto Scaling group workers";
    assert_eq!(account.findings().await, [left]);

    account.put_group(&[Hook::terminate("spillway"), hook("dns")]).await;
    let abandoned = "warn hook-default-abandon hook spillway of Auto Scaling group workers";
    assert_eq!(account.findings().await, [abandoned, left]);

    let queue = "arn:aws:sqs:us-east-1:123456789012:nth".to_owned();
    account.put_group(&[Hook { notifies: Some(queue), ..hook("spillway") }]).await;
    let beside = "warn hook-notification-target hook spillway of Auto Scaling group workers";
    assert_eq!(account.findings().await, [beside]);

    account.put_group(&[hook("spillway")]).await;
}

async fn second_drainers(account: &Account) {
    let aws = account.world.aws_side();
    let queue = "arn:aws:sqs:us-east-1:123456789012:MyK8sTermQueue";
    // As NTH's own page makes them.
    let pattern = json!({"source": ["aws.autoscaling"], "detail-type": ["EC2 Instance-terminate Lifecycle Action"]});
    aws.put_rule("MyK8sASGTermRule", &pattern, queue).await.expect("the rule is new");
    assert_eq!(account.findings().await, [format!("warn second-drainer {queue}")]);
    aws.delete_rule("MyK8sASGTermRule").await.expect("it is there");

    let topic = "arn:aws:sns:us-east-1:123456789012:people";
    aws.put_rule("tells-people", &pattern, topic).await.expect("the rule is new");
    assert_eq!(account.findings().await, [] as [&str; 0], "who only takes note drains nothing");
    aws.delete_rule("tells-people").await.expect("it is there");

    let tags = [("karpenter.k8s.aws/ec2nodeclass".to_owned(), "default".to_owned())].into();
    let node = aws.run_instance(&InstanceRequest { tags, ..InstanceRequest::default() }).await.expect("it runs");
    assert_eq!(account.findings().await, ["warn karpenter-queue-missing Karpenter's nodes"]);
    aws.terminate_instance(&node.instance_id).await.expect("it ends");

    // In the cluster, as its Helm chart labels it.
    let client = account.world.admin();
    let mut pod = pods::bare_pod("kube-system", "nth", &PodShape::default());
    pod.metadata.labels =
        Some([("app.kubernetes.io/name".to_owned(), "aws-node-termination-handler".to_owned())].into());
    let (in_system, at_once) =
        (Api::<Pod>::namespaced(client.clone(), "kube-system"), DeleteParams::default().grace_period(0));
    // The doctor lists from the API server's cache; a list of this kind waits until that has caught up.
    let until_cached = async || drop(in_system.list(&ListParams::default()).await.expect("a list"));
    pods::create(&client, &pod).await.expect("it is created");
    until_cached().await;
    let in_cluster = "warn nth-runs aws-node-termination-handler in namespace kube-system";
    assert_eq!(account.findings().await, [in_cluster]);
    in_system.delete("nth", &at_once).await.expect("it is deleted");
    until_cached().await;
}

async fn dry_run() {
    let [rebalance, launch] = WANTED;
    let account = Account::set_with("doctor-dry-run", &[rebalance, launch, ("SPILLWAY_DRY_RUN", "true")]).await;
    assert_eq!(account.findings().await, ["fail dry-run the parameter DryRun"]);
}

/// Nobody has looked into them: no metric says that there is no failure, and none ends the alarm of an earlier one.
async fn clusters_that_nobody_knows(account: &Account) {
    account.deny("eks", "ListClusters").await;
    let outcome = account.lambda.invoke(&sample("doctor")).await;
    account.allow_all().await;
    let report = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error:?} {outcome:#?}"));
    assert_eq!(report["status"], "unknown", "{report:#}");
    let metrics = outcome.logs.iter().find(|line| line.contains("_aws")).expect("the metrics");
    assert!(metrics.contains("\"SelfTests\":0") && !metrics.contains("Findings"), "{metrics}");
}

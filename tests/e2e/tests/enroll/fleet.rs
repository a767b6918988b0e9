//! An account with clusters and groups, and an operator with the real AWS CLI, kubectl and SAM CLI.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::aws::Credentials;
use spillway_bed::lambda::Lambda;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::setup::{Setup, project_file};
use spillway_bed::{Aws, Cluster, NodeOptions, TestNode, World, WorldOptions};
use spillway_e2e::{assert_drained, function, sample, the_one};
use tokio::process::Command;

use crate::objects;

pub(crate) const STACK: &str = "spillway";
pub(crate) const FUNCTION: &str = "spillway-enroll";
/// Clusters from the beginning.
pub(crate) const FIRST: [&str; 3] = ["red", "blue", "green"];
/// A later cluster with the oldest authentication mode.
pub(crate) const NEXT: &str = "old";
/// Groups and their clusters.
pub(crate) const GROUPS: [(&str, &str); 6] =
    [("red-a", "red"), ("red-b", "red"), ("blue-a", "blue"), ("blue-b", "blue"), ("green-a", "green"), ("old-a", NEXT)];
/// A managed node group, which EKS drains.
pub(crate) const MANAGED: &str = "red-managed";
/// A group whose node outlives Spillway.
pub(crate) const STAYS: &str = "stays";

/// Namespaces of the drained pods.
const APPS: [&str; 3] = ["spot", "terminate", "handed-in"];

/// Tag of groups whose hooks IAM lets the function complete.
pub(crate) const GROUP_TAG: &str = "drained-by=spillway";

pub(crate) const FINE: i32 = 0;
pub(crate) const NOT_FINE: i32 = 1;

/// Deploys a function that answers synchronous invocations.
async fn serve(world: &World, name: &'static str) -> Lambda {
    let lambda = function(world, name, &SETTINGS).await;
    let (side, served) = (world.aws_side(), lambda.clone());
    tokio::spawn(async move { side.serve(name, &served).await });
    lambda
}

pub(crate) struct Fleet {
    pub(crate) world: World,
    pub(crate) aws: Aws,
    pub(crate) lambda: Lambda,
    pub(crate) person: Credentials,
    pub(crate) python: std::path::PathBuf,
    pub(crate) stays: TestNode,
}

const TEMPLATE: &str = include_str!("../../../../template.yaml");
const ROLES: &str = include_str!("../../../../deploy/cloudformation/roles.yaml");
/// Stack of an administrator's roles.
pub(crate) const STACK_OF_ROLES: &str = "spillway-roles";
/// A name as CloudFormation makes it, covered by rights on names with the stack's prefix.
const FUNCTION_WITH_ROLES: &str = "spillway-Drain-ABCDEFGHIJKL";
const SETTINGS: [(&str, &str); 2] = [("SPILLWAY_CORDON_ON", "rebalance"), ("SPILLWAY_HOOK_GROUP_TAG", GROUP_TAG)];

/// Result of a run of the tool.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) report: Value,
}

impl Run {
    pub(crate) fn of(&self, cluster: &str) -> &Value {
        let clusters = self.report["clusters"].as_array().unwrap_or_else(|| panic!("{self:#?}"));
        clusters.iter().find(|one| one["cluster"] == cluster).unwrap_or_else(|| panic!("no {cluster}: {self:#?}"))
    }

    /// Steps in a state, as `cluster what`.
    pub(crate) fn steps(&self, state: &str) -> Vec<String> {
        let clusters = self.report["clusters"].as_array().into_iter().flatten();
        let steps = clusters.flat_map(|one| one["steps"].as_array().into_iter().flatten().map(move |step| (one, step)));
        let found = steps.filter(|(_, step)| step["state"] == state);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        found.map(|(one, step)| format!("{} {}", text(&one["cluster"]), text(&step["what"]))).collect()
    }
}

impl Fleet {
    pub(crate) async fn set() -> Self {
        let options = WorldOptions {
            clusters: FIRST.into_iter().chain([NEXT]).map(str::to_owned).collect(),
            unprepared: ["API", "API_AND_CONFIG_MAP", "API", "CONFIG_MAP"].map(str::to_owned).into(),
            ..WorldOptions::default()
        };
        let world = World::start_with(options).await.unwrap_or_else(|error| panic!("{error}"));
        let aws = world.aws_side();
        for (group, cluster) in GROUPS.into_iter().chain([(STAYS, "red")]) {
            let tag = format!("kubernetes.io/cluster/{cluster}");
            aws.put_tagged_group(group, &[], &[(&tag, "owned")]).await.expect("the group is new");
        }
        let tags = [("kubernetes.io/cluster/red", "owned"), ("eks:nodegroup-name", "managed")];
        aws.put_tagged_group(MANAGED, &[], &tags).await.expect("the group is new");

        let lambda = serve(&world, FUNCTION).await;

        let person = aws.credentials("spillway-enroller", "person").await.expect("the role exists");
        let python = Setup::find().expect("the set-up").python;
        let [red, ..] = world.clusters() else { panic!("there are three clusters") };
        let options = NodeOptions::in_group(STAYS);
        let stays = red.add_node(options).await.expect("the node joins");
        aws.delete_stack(STACK).await.expect("the bed has it from its beginning");
        let fleet = Self { world, aws, lambda, person, python, stays };
        fleet.put_aws_auth("").await;
        fleet
    }

    pub(crate) async fn deploy(&self) {
        self.deploy_function(FUNCTION, &[("NodeEvents", "false")]).await;
    }

    /// Deploys the stack with the roles of another, and updates it.
    pub(crate) async fn deploy_with_roles(&mut self) {
        let names = ["spillway-drain", "spillway-roles-SchedulesRole", "spillway-announcer"];
        let arns = names.map(|name| self.role(name)).join(",");
        let outputs = BTreeMap::from([("RoleArns", arns.clone())]);
        let of_stack = BTreeMap::from([("StackName", STACK), ("HookGroupTag", GROUP_TAG)]);
        self.aws.deploy_stack(STACK_OF_ROLES, ROLES, &outputs, &of_stack).await.expect("a stack");
        for node_events in ["true", "false"] {
            let parameters = [("RoleArns", arns.as_str()), ("NodeEvents", node_events)];
            self.deploy_function(FUNCTION_WITH_ROLES, &parameters).await;
        }
        self.lambda = serve(&self.world, FUNCTION_WITH_ROLES).await;
    }

    fn role(&self, name: &str) -> String {
        format!("arn:aws:iam::{}:role/{name}", self.world.account)
    }

    async fn deploy_function(&self, name: &str, parameters: &[(&str, &str)]) {
        let outputs = BTreeMap::from([("RoleArn", self.role("spillway-drain")), ("FunctionName", name.to_owned())]);
        let parameters =
            [("Hooks", "spillway"), ("HookGroupTag", GROUP_TAG)].iter().chain(parameters).copied().collect();
        // As `sam deploy` hands it to CloudFormation: with its code in S3.
        let packaged = TEMPLATE.replace("CodeUri: .", "CodeUri: s3://sam/spillway");
        self.aws.deploy_stack(STACK, &packaged, &outputs, &parameters).await.expect("a stack");
    }

    pub(crate) fn cluster(&self, name: &str) -> &Cluster {
        self.world.clusters().iter().find(|one| one.cluster == name).expect("the world has the cluster")
    }

    /// A program with that person's credentials and another cluster's kubeconfig.
    fn program_of(&self, person: &Credentials, name: &Path) -> Command {
        let programs =
            [self.python.parent(), self.world.kubectl.parent()].map(|folder| folder.unwrap_or(Path::new("/")));
        let path = std::env::join_paths(programs.into_iter().chain([Path::new("/usr/bin"), Path::new("/bin")]));
        let mut command = Command::new(name);
        command
            .env_clear()
            .env("PATH", path.expect("no folder has a colon"))
            .env("HOME", &self.world.dir)
            .env("KUBECONFIG", &self.cluster(NEXT).kubeconfig)
            .env("AWS_REGION", &self.world.region)
            .env("AWS_DEFAULT_REGION", &self.world.region)
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("AWS_ACCESS_KEY_ID", &person.access_key_id)
            .env("AWS_SECRET_ACCESS_KEY", &person.secret_access_key)
            .env("AWS_SESSION_TOKEN", &person.session_token);
        // Without STS: a token is a signed call to STS' own host.
        for service in ["CLOUDFORMATION", "EKS", "AUTO_SCALING", "EC2", "LAMBDA", "S3", "SSM"] {
            command.env(format!("AWS_ENDPOINT_URL_{service}"), &self.world.aws);
        }
        command
    }

    /// Runs `spillway enroll`.
    pub(crate) async fn enroll(&self, arguments: &[&str]) -> Run {
        let tool = project_file("tools/spillway").expect("the tool");
        let mut command = self.program_of(&self.person, &self.python);
        let ran = command
            .arg(tool)
            .arg("enroll")
            .args(arguments)
            .args(["--yes", "-o", "json"])
            .output()
            .await
            .expect("there is a Python");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let report = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| json!(text(&ran.stdout)));
        let run = Run { code: ran.status.code().unwrap_or(-1), report };
        println!("enroll {}: {run:#?} {}", arguments.join(" "), text(&ran.stderr));
        run
    }

    /// Runs a command of the AWS CLI as that role. Returns `true` if it succeeds.
    pub(crate) async fn runs(&self, role: &str, command: &str) -> bool {
        let person = self.aws.credentials(role, "person").await.expect("the role exists");
        let mut aws = self.program_of(&person, &self.python.with_file_name("aws"));
        let ran = aws.args(command.split_whitespace().skip(1)).output().await.expect("there is an AWS CLI");
        println!("{command}: {ran:#?}");
        ran.status.success()
    }

    /// Runs `sam delete` as the deployer.
    pub(crate) async fn sam_delete(&self) {
        let deployer = self.aws.credentials("deployer", "person").await.expect("the role exists");
        let mut sam = self.program_of(&deployer, &self.python.with_file_name("sam"));
        sam.args(["delete", "--stack-name", STACK, "--no-prompts", "--region", &self.world.region]);
        let ran =
            sam.env("SAM_CLI_TELEMETRY", "0").current_dir(&self.world.dir).output().await.expect("there is a SAM CLI");
        println!("sam delete: {ran:#?}");
        assert!(
            ran.status.success() && String::from_utf8_lossy(&ran.stdout).contains("Deleted successfully"),
            "{ran:#?}"
        );
    }

    /// State that enrolling could change: objects of every kind, access entries, groups, the node that stays, and cached
    /// endpoints.
    pub(crate) async fn snapshot(&self) -> Value {
        let mut snapshot = json!({});
        for cluster in self.world.clusters() {
            let entries = self.aws.access_entries(&cluster.cluster).await.expect("entries");
            snapshot[&cluster.cluster] = json!([objects::of(cluster, &APPS).await, entries]);
        }
        for group in GROUPS.map(|(group, _)| group).into_iter().chain([STAYS, MANAGED]) {
            snapshot[group] = self.aws.group(group).await.expect("the group exists");
        }
        let node = Api::<Node>::all(self.cluster("red").admin()).get(&self.stays.name).await.expect("the node stays");
        snapshot["node"] = json!([node.spec, node.labels(), node.annotations()]);
        snapshot["parameters"] = self.left().await["parameters"].clone();
        snapshot
    }

    /// Resources of the account, without the list of the clusters' names, which is the stack's (docs/uninstall.md).
    async fn left(&self) -> Value {
        let mut left = self.aws.left().await.expect("the account answers");
        let parameters = left["parameters"].as_array_mut().expect("names");
        parameters.retain(|name| name != "/spillway/spillway/clusters/_names");
        left
    }

    /// The snapshot, and all that a stack could leave in the account.
    pub(crate) async fn everything(&self) -> Value {
        json!([self.snapshot().await, self.left().await])
    }

    /// Asserts that a spot notice and a terminate notice drain a node with pods in each cluster.
    pub(crate) async fn assert_drain(&self, clusters: &[(&str, &str)]) {
        let nodes = clusters.iter().flat_map(|(name, group)| {
            let spot = NodeOptions::spot();
            let in_group = NodeOptions::in_group(group);
            [(*name, APPS[0], spot), (*name, APPS[1], in_group)]
        });
        join_all(nodes.map(|(name, app, options)| self.assert_drains(name, app, options))).await;
    }

    pub(crate) async fn assert_drains(&self, name: &str, app: &str, options: NodeOptions) {
        let cluster = self.cluster(name);
        let node = cluster.add_node(options).await.expect("the node joins");
        let shape = PodShape::default().exits_after(Duration::from_secs(1)).on_node(&node.name);
        pods::create_namespace(&cluster.admin(), app).await.expect("the namespace is new");
        pods::run_deployment(&cluster.admin(), app, app, 2, &shape).await.expect("its pods run");
        let delivered = if app == APPS[0] {
            self.aws.interrupt(&node.instance_id, Duration::from_mins(2)).await
        } else {
            self.aws.terminate(&node.instance_id).await
        };
        let outcome = self.lambda.invoke(the_one(delivered.expect("AWS gives notice"))).await;
        assert_drained(&outcome, 2);
        // The end of the notice's window.
        self.aws.terminate_instance(&node.instance_id).await.expect("EC2 terminates");
    }

    /// Puts lines of the tool into aws-auth.
    pub(crate) async fn put_aws_auth(&self, lines: &str) {
        let maps = Api::<ConfigMap>::namespaced(self.cluster(NEXT).admin(), "kube-system");
        let map = json!({"metadata": {"name": "aws-auth"}, "data": {"mapRoles": lines}});
        let made = maps.get_opt("aws-auth").await.expect("the API server answers");
        if made.is_none() {
            let map = serde_json::from_value(map).expect("a ConfigMap");
            maps.create(&PostParams::default(), &map).await.expect("the map is new");
        } else {
            maps.patch("aws-auth", &PatchParams::default(), &Patch::Merge(map)).await.expect("the map changes");
        }
    }

    /// Returns `true` if the doctor of all clusters has such a finding in this one, with the command that enrolls the cluster.
    pub(crate) async fn doctor_finds(&self, cluster: &str, id: &str) -> bool {
        let report = self.lambda.invoke(&sample("doctor")).await.result.expect("the doctor answers");
        let checks = report["checks"].as_array().cloned().unwrap_or_default();
        let of_cluster = checks.iter().filter(|check| check["cluster"] == cluster);
        let mut findings = of_cluster.flat_map(|check| check["findings"].as_array().into_iter().flatten());
        let Some(found) = findings.find(|one| one["id"] == id) else { return false };
        let command = found["command"].as_str().unwrap_or_default();
        let enroll =
            format!("tools/spillway enroll --stack {STACK} --region {} --cluster {cluster}", self.world.region);
        assert!(command.starts_with(&enroll), "{found:#}");
        true
    }
}

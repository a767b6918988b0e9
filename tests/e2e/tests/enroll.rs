//! Clusters that nobody has prepared, of each authentication mode, and the one command that enrols them: `tools/enroll` with the
//! real AWS CLI and kubectl, signed in through the clusters' own authenticators, under IAM.
//!
//! It changes the clusters for everybody, so this is the only test of this world.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::aws::{Credentials, Fault};
use spillway_bed::lambda::Lambda;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::setup::{Setup, project_file};
use spillway_bed::{Aws, Cluster, NodeOptions, TestNode, World, WorldOptions};
use spillway_e2e::{fates, function, sample, the_one};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

const STACK: &str = "spillway";
const FUNCTION: &str = "spillway-enroll";
/// The clusters that are there from the beginning.
const FIRST: [&str; 3] = ["red", "blue", "green"];
/// Made next month, and with the oldest way to let roles in.
const NEXT: &str = "old";
/// Each group, and its cluster.
const GROUPS: [(&str, &str); 6] =
    [("red-a", "red"), ("red-b", "red"), ("blue-a", "blue"), ("blue-b", "blue"), ("green-a", "green"), ("old-a", NEXT)];
/// EKS drains its nodes.
const MANAGED: &str = "red-managed";
/// Its node stays when Spillway goes.
const STAYS: &str = "stays";

/// Without which IAM lets the function complete no hook of a group.
const GROUP_TAG: &str = "drained-by=spillway";

const FINE: i32 = 0;
const NOT_FINE: i32 = 1;
const NOT_LOOKED_AT: i32 = 2;

/// The account with its clusters, and the person who enrols them.
struct Fleet {
    world: World,
    aws: Aws,
    lambda: Lambda,
    person: Credentials,
    python: std::path::PathBuf,
    stays: TestNode,
}

/// This version's.
const TEMPLATE: &str = include_str!("../../../template.yaml");

/// What a run of the tool came to.
#[derive(Debug)]
struct Run {
    code: i32,
    said: Value,
    stderr: String,
}

impl Run {
    fn of(&self, cluster: &str) -> &Value {
        let clusters = self.said["clusters"].as_array().unwrap_or_else(|| panic!("{self:#?}"));
        clusters.iter().find(|one| one["cluster"] == cluster).unwrap_or_else(|| panic!("no {cluster}: {self:#?}"))
    }

    /// The steps that have that state, as `cluster what`.
    fn steps(&self, state: &str) -> Vec<String> {
        let clusters = self.said["clusters"].as_array().into_iter().flatten();
        let steps = clusters.flat_map(|one| one["steps"].as_array().into_iter().flatten().map(move |step| (one, step)));
        let found = steps.filter(|(_, step)| step["state"] == state);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        found.map(|(one, step)| format!("{} {}", text(&one["cluster"]), text(&step["what"]))).collect()
    }
}

impl Fleet {
    async fn set() -> Self {
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

        let settings = [("SPILLWAY_CORDON_ON", "rebalance"), ("SPILLWAY_HOOK_GROUP_TAG", GROUP_TAG)];
        let lambda = function(&world, FUNCTION, &settings).await;
        let (side, served) = (aws.clone(), lambda.clone());
        tokio::spawn(async move { side.serve(FUNCTION, &served).await });

        let person = aws.credentials("spillway-enroller", "person").await.expect("the role is there");
        let python = Setup::find().expect("it is set up").python;
        let [red, ..] = world.clusters() else { panic!("there are three clusters") };
        let options = NodeOptions { group: Some(STAYS.to_owned()), ..NodeOptions::default() };
        let stays = red.add_node(options).await.expect("the node joins");
        let fleet = Self { world, aws, lambda, person, python, stays };
        fleet.deploy(TEMPLATE, "").await;
        fleet
    }

    /// Deploys the stack with that template, and the parameter `ClusterAccess` if it has one.
    async fn deploy(&self, template: &str, cluster_access: &str) {
        let role = format!("arn:aws:iam::{}:role/spillway-drain", self.world.account);
        let outputs = BTreeMap::from([("RoleArn", role), ("FunctionName", FUNCTION.to_owned())]);
        let mut parameters =
            BTreeMap::from([("Hooks", "spillway"), ("NodeEvents", "none"), ("HookGroupTag", GROUP_TAG)]);
        if template.contains("  ClusterAccess:") {
            parameters.insert("ClusterAccess", cluster_access);
        }
        self.aws.deploy_stack(STACK, template, &outputs, &parameters).await.expect("it is deployed");
    }

    fn cluster(&self, name: &str) -> &Cluster {
        self.world.clusters().iter().find(|one| one.cluster == name).expect("the world has it")
    }

    /// A program as the person runs it, with a kubeconfig of another cluster around.
    fn program(&self, name: &Path) -> Command {
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
            .env("AWS_ACCESS_KEY_ID", &self.person.access_key_id)
            .env("AWS_SECRET_ACCESS_KEY", &self.person.secret_access_key)
            .env("AWS_SESSION_TOKEN", &self.person.session_token);
        // Not STS: the token is a signed call to its own host.
        for service in ["CLOUDFORMATION", "EKS", "AUTO_SCALING", "EC2", "LAMBDA"] {
            command.env(format!("AWS_ENDPOINT_URL_{service}"), &self.world.aws);
        }
        command
    }

    /// Runs the tool.
    async fn enroll(&self, arguments: &[&str]) -> Run {
        let tool = project_file("tools/enroll").expect("it is part of the product");
        let mut command = self.program(&self.python);
        let ran = command.arg(tool).args(arguments).arg("--json").output().await.expect("there is a Python");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| json!(text(&ran.stdout)));
        let run = Run { code: ran.status.code().unwrap_or(-1), said, stderr: text(&ran.stderr) };
        println!("enroll {}: {run:#?}", arguments.join(" "));
        run
    }

    /// All that enrolling could change: entries, objects, groups, and the node that stays.
    async fn snapshot(&self) -> Value {
        let mut seen = json!({});
        for cluster in self.world.clusters() {
            let client = cluster.admin();
            let labelled = ListParams::default().labels("app.kubernetes.io/name=spillway");
            let roles = Api::<ClusterRole>::all(client.clone()).list(&labelled).await.expect("roles");
            let bindings = Api::<ClusterRoleBinding>::all(client.clone()).list(&labelled).await.expect("bindings");
            let schemas = Api::<FlowSchema>::all(client.clone()).list(&labelled).await.expect("schemas");
            let levels = Api::<PriorityLevelConfiguration>::all(client.clone()).list(&labelled).await.expect("levels");
            let entries = self.aws.access_entries(&cluster.cluster).await.expect("entries");
            seen[&cluster.cluster] = json!([roles.items, bindings.items, schemas.items, levels.items, entries]);
        }
        for group in GROUPS.map(|(group, _)| group).into_iter().chain([STAYS, MANAGED]) {
            seen[group] = self.aws.group(group).await.expect("the group is there");
        }
        let node = Api::<Node>::all(self.cluster("red").admin()).get(&self.stays.name).await.expect("it stays");
        let spec = node.spec.as_ref().map(|spec| (spec.unschedulable, spec.taints.clone()));
        seen["node"] = json!([spec, node.labels(), node.annotations().get("spillway/claim")]);
        seen
    }

    /// A spot notice and a terminate notice in each cluster, each for a node with pods, and all drain.
    async fn assert_drain(&self, clusters: &[(&str, &str)]) {
        let nodes = clusters.iter().flat_map(|(name, group)| {
            let spot = NodeOptions { spot: true, ..NodeOptions::default() };
            let in_group = NodeOptions { group: Some((*group).to_owned()), ..NodeOptions::default() };
            [(*name, "spot", spot), (*name, "terminate", in_group)]
        });
        join_all(nodes.map(|(name, app, options)| self.assert_drains(name, app, options))).await;
    }

    async fn assert_drains(&self, name: &str, app: &str, options: NodeOptions) {
        let cluster = self.cluster(name);
        let node = cluster.add_node(options).await.expect("the node joins");
        let shape = PodShape::default().exits_after(Duration::from_secs(1)).on_node(&node.name);
        pods::create_namespace(&cluster.admin(), app).await.expect("the namespace is new");
        pods::run_deployment(&cluster.admin(), app, app, 2, &shape).await.expect("its pods run");
        let delivered = if app == "spot" {
            self.aws.interrupt(&node.instance_id, Duration::from_mins(2)).await
        } else {
            self.aws.terminate(&node.instance_id).await
        };
        let outcome = self.lambda.invoke(the_one(delivered.expect("AWS gives notice"))).await;
        let receipt = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error:?} {outcome:#?}"));
        assert_eq!((&receipt["ending"], fates(receipt)["clean"]), (&json!("drained"), 2), "{name} {app}: {outcome:#?}");
        // Its two minutes are over.
        self.aws.terminate_instance(&node.instance_id).await.expect("EC2 takes it");
    }

    /// Somebody adds to aws-auth what the tool told.
    async fn put_aws_auth(&self, lines: &str) {
        let maps = Api::<ConfigMap>::namespaced(self.cluster(NEXT).admin(), "kube-system");
        let map = json!({"metadata": {"name": "aws-auth"}, "data": {"mapRoles": lines}});
        let made = maps.get_opt("aws-auth").await.expect("the API server answers");
        if made.is_none() {
            let map = serde_json::from_value(map).expect("it is a ConfigMap");
            maps.create(&PostParams::default(), &map).await.expect("it is new");
        } else {
            maps.patch("aws-auth", &PatchParams::default(), &Patch::Merge(map)).await.expect("it is changed");
        }
    }

    /// Waits until the cluster lets the function in: EKS takes some seconds.
    async fn assert_let_in(&self, cluster: &str) {
        let let_in = async {
            while self.doctor_finds(cluster, "no-access-entry").await {
                sleep(Duration::from_millis(200)).await;
            }
        };
        timeout(Duration::from_mins(1), let_in).await.unwrap_or_else(|_| panic!("{cluster} does not let us in"));
    }

    /// Whether the doctor finds that in a cluster, asked about all, and names the command that enrols it.
    async fn doctor_finds(&self, cluster: &str, id: &str) -> bool {
        let report = self.lambda.invoke(&sample("doctor")).await.result.expect("the doctor answers");
        let checks = report["checks"].as_array().cloned().unwrap_or_default();
        let of_cluster = checks.iter().filter(|check| check["cluster"] == cluster);
        let mut findings = of_cluster.flat_map(|check| check["findings"].as_array().into_iter().flatten());
        let Some(found) = findings.find(|one| one["id"] == id) else { return false };
        let command = found["command"].as_str().unwrap_or_default();
        let enroll = format!("tools/enroll --stack {STACK} --region {} --cluster {cluster}", self.world.region);
        assert!(command.starts_with(&enroll), "{found:#}");
        true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_are_enrolled_by_one_command_drain_and_are_left_as_they_were() {
    let fleet = Fleet::set().await;
    let next = fleet.cluster(NEXT).clone();
    fleet.aws.hide_cluster(NEXT).await.expect("EKS had it");
    let before = fleet.snapshot().await;

    cluster_access_goes(&fleet).await;
    assert_eq!(fleet.snapshot().await, before);
    three_clusters(&fleet).await;
    a_fourth_is_found_by_the_doctor(&fleet, &next).await;
    fleet.assert_drain(&[("red", "red-a"), ("blue", "blue-a"), ("green", "green-a"), (NEXT, "old-a")]).await;
    what_is_out_of_date_is_put_right(&fleet).await;
    mistakes(&fleet).await;
    all_is_taken_away(&fleet, &before).await;
}

async fn three_clusters(fleet: &Fleet) {
    let first = fleet.enroll(&["--all", "--groups"]).await;
    assert_eq!(first.code, FINE, "{first:#?}");
    for cluster in FIRST {
        let row = first.of(cluster);
        assert_eq!(
            (&row["access"], &row["rights"], &row["groups_without_hook"]),
            (&json!("done"), &json!("done"), &json!([]))
        );
        let verdict = row["doctor"].as_str().unwrap_or_default();
        assert!(verdict.starts_with("ok") || verdict.starts_with("warn"), "{first:#?}");
    }
    assert_eq!(first.of("red")["groups_with_hook"], json!(["red-a", "red-b", STAYS]));
    let managed = fleet.aws.group(MANAGED).await.expect("the group is there");
    assert_eq!(managed["hooks"], json!([]), "EKS drains its nodes");
}

async fn a_fourth_is_found_by_the_doctor(fleet: &Fleet, next: &Cluster) {
    let ca = std::fs::read(&next.ca).expect("its authority");
    let ca = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, ca);
    fleet.aws.put_cluster(NEXT, &next.api_server, &ca, Some("CONFIG_MAP")).await.expect("EKS has it");
    assert!(fleet.doctor_finds(NEXT, "not-in-group").await || fleet.doctor_finds(NEXT, "no-access-entry").await);

    let before = fleet.snapshot().await;
    let plan = fleet.enroll(&["--cluster", NEXT, "--groups", "--plan"]).await;
    // The line in aws-auth is somebody's own to write, and no hook waits for a function that cannot drain there.
    assert_eq!(plan.code, NOT_FINE);
    let (tag, hook) =
        (format!("{NEXT} tag {GROUP_TAG} of group old-a"), format!("{NEXT} hook spillway of group old-a"));
    assert_eq!(plan.steps("told"), [format!("{NEXT} line in aws-auth"), tag.clone(), hook.clone()]);
    assert_eq!(plan.steps("to do"), ["old ClusterRole spillway", "old ClusterRoleBinding spillway"]);
    assert_eq!(fleet.snapshot().await, before);

    let commands = &plan.of(NEXT)["steps"][0]["commands"];
    fleet.put_aws_auth(commands[1].as_str().expect("the line")).await;
    let run = fleet.enroll(&["--all", "--groups"]).await;
    assert_eq!(run.code, FINE, "{run:#?}");
    // A second run changes nothing in the others.
    let mut done = plan.steps("to do");
    done.extend([tag, hook]);
    assert_eq!(run.steps("done"), done);
    assert!(!fleet.doctor_finds(NEXT, "not-in-group").await && !fleet.doctor_finds(NEXT, "no-access-entry").await);
}

/// The parameter made one cluster's access entry. Who used it is let in through both upgrades: to the version that keeps the entry
/// whatever happens, and to the one that no longer knows it.
async fn cluster_access_goes(fleet: &Fleet) {
    let previous = TEMPLATE.replace("    DeletionPolicy: Retain\n    UpdateReplacePolicy: Retain\n", "");
    fleet.deploy(&previous, "blue").await;
    fleet.assert_let_in("blue").await;

    fleet.deploy(TEMPLATE, "blue").await;
    fleet.assert_let_in("blue").await;
    // The tool takes the entry over, so that it can take it away.
    let taken_over = fleet.enroll(&["--cluster", "blue"]).await;
    assert!(taken_over.steps("done").contains(&"blue access entry".to_owned()), "{taken_over:#?}");
    fleet.deploy(&without_cluster_access(TEMPLATE), "").await;
    fleet.assert_let_in("blue").await;

    fleet.deploy(TEMPLATE, "").await;
    let removed = fleet.enroll(&["--cluster", "blue", "--remove"]).await;
    assert_eq!(removed.code, FINE, "{removed:#?}");
}

/// The next version's template.
fn without_cluster_access(template: &str) -> String {
    let mut dropped = false;
    let kept = template.lines().filter(|line| {
        let begins = line.starts_with("  ") && !line.starts_with("   ") || line.is_empty();
        dropped = if begins { matches!(line.trim(), "ClusterAccess:" | "AccessEntry:") } else { dropped };
        !dropped
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// An entry of ours that has lost its group, and objects of an older version, are put right. What somebody has put in is not ours.
async fn what_is_out_of_date_is_put_right(fleet: &Fleet) {
    let entries = fleet.aws.access_entries("red").await.expect("entries");
    let principal = entries[0]["principalArn"].as_str().expect("a role").to_owned();
    let mut update = fleet.program(&fleet.python.with_file_name("aws"));
    let empty = ["eks", "update-access-entry", "--cluster-name", "red", "--kubernetes-groups", "[]", "--principal-arn"];
    update.args(empty);
    assert!(update.arg(principal).status().await.expect("there is an AWS CLI").success());
    let roles = Api::<ClusterRole>::all(fleet.cluster("red").admin());
    let role = roles.get("spillway").await.expect("it is there");
    let (wanted, less) = (json!(role.rules), json!([role.rules.as_ref().expect("rules")[0]]));
    let applied = PatchParams::apply("spillway-enroll").force();
    let of_rules = |rules: &Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "spillway", "labels": role.labels()}, "rules": rules})
    };
    roles.patch("spillway", &applied, &Patch::Apply(of_rules(&less))).await.expect("an older version");
    let run = fleet.enroll(&["--cluster", "red", "--with", "flow-control.yaml"]).await;
    assert_eq!(run.code, FINE, "{run:#?}");
    let done = run.steps("done");
    assert!(
        ["red access entry", "red ClusterRole spillway"].iter().all(|step| done.contains(&(*step).to_owned())),
        "{run:#?}"
    );
    assert_eq!(json!(roles.get("spillway").await.expect("it is there").rules), wanted);
    assert!(!fleet.doctor_finds("red", "no-flow-control").await);

    let somebody = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
    roles.patch("spillway", &somebody, &Patch::Merge(json!({"rules": less}))).await.expect("it is changed");
    // What a cluster has of deploy/optional/ is kept up to date without being named again.
    let run = fleet.enroll(&["--cluster", "red", "--plan"]).await;
    assert_eq!((run.code, run.steps("told")), (NOT_FINE, vec!["red ClusterRole spillway".to_owned()]), "{run:#?}");
    assert!(run.of("red")["steps"].to_string().contains("somebody"), "{run:#?}");
    assert!(run.steps("there").contains(&"red FlowSchema spillway".to_owned()), "{run:#?}");
    // Back as it was, and ours again.
    roles.patch("spillway", &applied, &Patch::Apply(of_rules(&wanted))).await.expect("it is as it was");
}

async fn mistakes(fleet: &Fleet) {
    let unknown = fleet.enroll(&["--cluster", "red", "rde"]).await;
    assert_eq!(unknown.code, NOT_LOOKED_AT);
    assert!(
        unknown.stderr.contains("no EKS cluster rde in us-east-1; there are: blue, green, old, red"),
        "{unknown:#?}"
    );
    let key = &fleet.person.access_key_id;
    let expired = Fault {
        status: Some(403),
        code: Some("ExpiredToken".to_owned()),
        message: Some("The security token included in the request is expired".to_owned()),
        ..Fault::of(key, "cloudformation", "DescribeStacks")
    };
    fleet.aws.add_fault(&expired).await.expect("a fault");
    let signed_out = fleet.enroll(&["--all"]).await;
    assert_eq!((signed_out.code, signed_out.stderr.contains("Sign in")), (NOT_LOOKED_AT, true), "{signed_out:#?}");
    fleet.aws.clear_faults(key).await.expect("no fault");

    // Its API server is out of reach: it is told with its commands, and the others are done.
    let ca =
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, std::fs::read(&fleet.world.ca).expect("ca"));
    let away = fleet.aws.override_endpoint(&fleet.person.access_key_id, "blue", Some("https://127.0.0.1:9"), Some(&ca));
    away.await.expect("EKS shows it");
    let half = fleet.enroll(&["--cluster", "red", "blue", "red"]).await;
    assert_eq!((half.code, half.of("red")["rights"].as_str()), (NOT_FINE, Some("there")), "{half:#?}");
    assert_eq!(half.steps("told"), ["blue objects of deploy/"]);
    assert!(half.of("blue")["steps"].to_string().contains("tools/enroll --stack spillway"), "{half:#?}");
    assert_eq!(half.said["remarks"], json!(["red was named more than once, and is done once"]));
    let back =
        fleet.aws.override_endpoint(&fleet.person.access_key_id, "blue", Some(&fleet.cluster("blue").api_server), None);
    back.await.expect("EKS shows it");
}

async fn all_is_taken_away(fleet: &Fleet, before: &Value) {
    // A node whose instance stays, and one that drains.
    let mut rebalance = sample("rebalance-recommendation");
    rebalance["detail"]["instance-id"] = json!(fleet.stays.instance_id);
    rebalance["time"] = json!(jiff::Timestamp::now().to_string());
    let notice = the_one(fleet.aws.send_notice(&rebalance).await.expect("the bus takes it"));
    let cordoned = fleet.lambda.invoke(notice).await;
    assert_eq!(cordoned.result.as_ref().expect("it is cordoned")["ending"], "done", "{cordoned:#?}");
    let options = NodeOptions { group: Some("red-b".to_owned()), ..NodeOptions::default() };
    let goes = fleet.cluster("red").add_node(options).await.expect("the node joins");
    let notice = the_one(fleet.aws.terminate(&goes.instance_id).await.expect("Auto Scaling terminates"));

    let waits = fleet.enroll(&["--all", "--remove"]).await;
    assert_eq!(waits.code, NOT_FINE);
    let told = waits.steps("told");
    for what in
        ["red hook spillway of group red-b", "red ClusterRole spillway", "red access entry", "old line in aws-auth"]
    {
        assert!(told.contains(&what.to_owned()), "{what}: {waits:#?}");
    }
    assert!(waits.steps("done").contains(&format!("red node {}", fleet.stays.name)), "{waits:#?}");
    // The drain still has its rights.
    let drained = fleet.lambda.invoke(notice).await;
    assert_eq!(drained.result.as_ref().expect("it drains")["ending"], "drained", "{drained:#?}");

    fleet.put_aws_auth("").await;
    let removed = fleet.enroll(&["--all", "--remove"]).await;
    assert_eq!((removed.code, removed.steps("told")), (FINE, Vec::new()), "{removed:#?}");
    assert_eq!(&fleet.snapshot().await, before);
}

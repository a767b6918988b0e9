//! The least rights that work: each one is used, and without it the drain fails and says so.
//!
//! They are taken away from everybody in this world, so this is the only test in it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use spillway_bed::aws::{Fault, Hook};
use spillway_bed::karpenter::Karpenter;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::volumes::{AttachedVolume, with_claim};
use spillway_bed::{NodeOptions, World};
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, receipt, spot_notice, world};

/// What the drain needs a right for, so that it is missed.
enum Need {
    /// The common way.
    Common,
    /// Somebody has cordoned the node already: we have to look.
    Look,
    /// The node has a name of its own: we have to search.
    Search,
    /// EC2 does not describe the instance: we have to search by its id.
    Unknown,
    /// A budget holds the pod to the end: we have to delete it.
    Force,
    /// So it does, and we want to know when it has room.
    Room,
    /// The notice may be called off, and we want to know it at once.
    CallOff,
    /// The pod has a volume, which is attached.
    Detach,
    /// A budget holds the pod to the end, and its Job is to know that it has not failed.
    Disrupt,
    /// The settings ask for Kubernetes events.
    Tell,
    /// The node is Karpenter's, and the settings hand it over.
    HandOver,
}

/// What becomes of a drain without a right.
#[derive(Debug, PartialEq)]
enum Without {
    Fails,
    /// It is slower or tells less, and says why.
    GoesOn,
}

impl Need {
    fn without(&self) -> Without {
        match self {
            Self::Common | Self::Look | Self::Search | Self::Force | Self::HandOver => Without::Fails,
            Self::Unknown | Self::Room | Self::CallOff | Self::Detach | Self::Disrupt | Self::Tell => Without::GoesOn,
        }
    }
}

#[tokio::test]
async fn without_any_one_of_its_rights_in_the_cluster_the_drain_fails_or_does_less_and_says_which() {
    let world = world().await;
    let karpenter = Karpenter::start(world, "rights").await.expect("Karpenter is installed");
    let cases = [
        ("nodes", "patch", Need::Common, "cannot patch resource \"nodes\""),
        ("nodes", "get", Need::Look, "cannot get resource \"nodes\""),
        ("nodes", "list", Need::Search, "cannot list resource \"nodes\""),
        ("nodes", "watch", Need::CallOff, "cannot watch resource \"nodes\""),
        ("pods", "list", Need::Common, "cannot list resource \"pods\""),
        ("pods", "watch", Need::Common, "cannot watch resource \"pods\""),
        ("pods", "delete", Need::Force, "cannot delete resource \"pods\""),
        ("pods/eviction", "create", Need::Common, "cannot create resource \"pods/eviction\""),
        ("poddisruptionbudgets", "list", Need::Room, "cannot list resource \"poddisruptionbudgets\""),
        ("poddisruptionbudgets", "watch", Need::Room, "cannot watch resource \"poddisruptionbudgets\""),
        ("csinodes", "list", Need::Unknown, "cannot list resource \"csinodes\""),
        ("volumeattachments", "get", Need::Detach, "cannot get resource \"volumeattachments\""),
        ("persistentvolumes", "get", Need::Detach, "cannot get resource \"persistentvolumes\""),
        ("pods/status", "patch", Need::Disrupt, "cannot patch resource \"pods/status\""),
        ("events", "create", Need::Tell, "cannot create resource \"events\""),
        ("nodeclaims", "get", Need::HandOver, "cannot get resource \"nodeclaims\""),
        ("nodeclaims", "patch", Need::HandOver, "cannot patch resource \"nodeclaims\""),
        ("nodeclaims", "delete", Need::HandOver, "cannot delete resource \"nodeclaims\""),
    ];
    let mut tried = BTreeSet::new();
    for (resource, verb, need, said) in cases {
        let name = format!("without-{verb}-{}", resource.replace('/', "-"));
        let own_name = matches!(need, Need::Search | Need::Unknown).then(|| format!("{name}-node"));
        let node_claim = match need {
            Need::HandOver => Some(karpenter.claim().await.expect("it is created")),
            _ => None,
        };
        // Only a drain for a hook waits for volumes.
        let group = matches!(need, Need::Detach).then(|| name.clone());
        if let Some(group) = &group {
            world.aws_side().put_group(group, &[Hook::terminate("spillway")]).await.expect("the group is new");
        }
        let options = NodeOptions { name: own_name, node_claim, group, ..NodeOptions::default() };
        let stage = Stage::set_with(&name, options).await;
        let settings = [("SPILLWAY_KARPENTER", "nodeclaim"), ("SPILLWAY_NODE_EVENTS", "true")];
        let stage = stage.with_settings(&settings).await;
        if matches!(need, Need::Disrupt) {
            let (client, shape) = (world.admin(), PodShape::default().on_node(&stage.node.name));
            pods::create(&client, &pods::job(&name, "web", &shape)).await.expect("it is created");
            pods::until_running_of(&client, &name, "web", 1).await.expect("it runs");
        } else {
            stage.deploy("web", 1, PodShape::default()).await;
        }
        if matches!(need, Need::Detach) {
            let (client, node) = (world.admin(), &stage.node.name);
            AttachedVolume::create(&client, (&name, "data"), "ReadWriteOnce", node).await.expect("it is attached");
            let pod = pods::bare_pod(&name, "db-0", &with_claim(PodShape::default().bound_to(node), "data"));
            pods::create(&client, &pod).await.expect("it is created");
        }
        if matches!(need, Need::Look) {
            cordon(world, &stage.node.name).await;
        }
        if matches!(need, Need::Force | Need::Room | Need::Disrupt) {
            let client = world.admin();
            pods::create(&client, &pods::budget(&name, "web", 1)).await.expect("it is created");
            pods::until_budget_sees(&client, &name, "web", 1).await.expect("it counts");
        }
        // With room for its pod, which the doctor asks for if it may.
        if resource == "pods/eviction" {
            let client = world.admin();
            pods::create(&client, &pods::budget_of_one_away(&name, "web")).await.expect("it is created");
            pods::until_budget_sees(&client, &name, "web", 1).await.expect("it counts");
        }
        let whole = take_away(world, resource, verb).await;
        // The API server's authorizer hears of it a moment later.
        until_missed(&stage, &format!("missing-right {verb} {resource}")).await;

        if matches!(need, Need::Unknown) {
            let of_call = Fault::of(stage.lambda.access_key_id(), "ec2", "DescribeInstances");
            let failing = Fault { status: Some(500), code: Some("InternalError".to_owned()), ..of_call };
            world.aws_side().add_fault(&failing).await.expect("a fault");
        }

        // Late, so that the window is short: fifteen seconds. A pod that a budget holds has half of it to go.
        let event = match need {
            Need::CallOff => Maintenance::of(&stage.node.instance_id, in_s(120)).notice(&name),
            Need::Detach => stage.terminate().await,
            _ => spot_notice(&stage.node.instance_id, Timestamp::now() - Duration::from_secs(105)),
        };
        let outcome = stage.lambda.invoke(&event).await;

        give_back(world, whole).await;
        let became = if outcome.result.is_err() { Without::Fails } else { Without::GoesOn };
        assert_eq!(became, need.without(), "without {verb} {resource}: {outcome:#?}");
        assert_eq!(receipt(&outcome)["ending"], if became == Without::Fails { "failed" } else { "drained" });
        let saying = |line: &&String| line.replace('\\', "").contains(said) && !line.contains("\"receipt\"");
        let times = outcome.logs.iter().filter(saying).count();
        match became {
            Without::Fails => assert!(outcome.logs.join("\n").replace('\\', "").contains(said), "{outcome:#?}"),
            Without::GoesOn => assert_eq!(times, 1, "it is said once: {outcome:#?}"),
        }
        tried.insert(format!("{verb} {resource}"));
    }
    assert_eq!(tried, all_rights(world).await, "every right is tried");
}

/// Waits until the doctor finds this, and blames nobody else for it.
async fn until_missed(stage: &Stage, missing: &str) {
    let begin = Instant::now();
    loop {
        let found = found_by_the_doctor(stage).await;
        if found == [missing] {
            return;
        }
        assert!(begin.elapsed() < Duration::from_mins(1), "the doctor finds {found:?}, and not only {missing}");
    }
}

/// The rights that the doctor finds missing, and the evictions that somebody refused.
async fn found_by_the_doctor(stage: &Stage) -> Vec<String> {
    let detail = json!({"cluster": stage.world.cluster});
    let order = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": detail});
    let outcome = stage.lambda.invoke(&order).await;
    let report = outcome.result.as_ref().expect("the doctor answers");
    let checks = report["checks"].as_array().into_iter().flatten();
    let findings = checks.flat_map(|check| check["findings"].as_array().into_iter().flatten());
    let found = findings.filter(|finding| finding["id"] == "missing-right" || finding["id"] == "eviction-refused");
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    found.map(|finding| format!("{} {}", text(finding, "id"), text(finding, "object"))).collect()
}

async fn cordon(world: &World, node: &str) {
    let nodes = Api::<k8s_openapi::api::core::v1::Node>::all(world.admin());
    let patch = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    nodes.patch(node, &PatchParams::default(), &patch).await.expect("it is cordoned");
}

fn roles(world: &World) -> Api<ClusterRole> {
    Api::all(world.admin())
}

/// The roles in deploy/.
const ROLES: [&str; 4] = ["spillway", "spillway-disruption-target", "spillway-node-events", "spillway-karpenter"];

async fn all_rights(world: &World) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for name in ROLES {
        let role = roles(world).get(name).await.expect("the role");
        for rule in role.rules.into_iter().flatten() {
            for resource in rule.resources.into_iter().flatten() {
                all.extend(rule.verbs.iter().map(|verb| format!("{verb} {resource}")));
            }
        }
    }
    all
}

/// The role that had it, as it was.
async fn take_away(world: &World, resource: &str, verb: &str) -> ClusterRole {
    for name in ROLES {
        let whole = roles(world).get(name).await.expect("the role");
        let mut less = whole.clone();
        for rule in less.rules.iter_mut().flatten() {
            if rule.resources.iter().flatten().any(|of| of == resource) {
                rule.verbs.retain(|of| of != verb);
            }
        }
        less.rules.iter_mut().for_each(|rules| rules.retain(|rule| !rule.verbs.is_empty()));
        if less != whole {
            roles(world).replace(name, &PostParams::default(), &less).await.expect("it is replaced");
            return whole;
        }
    }
    panic!("there is no right to {verb} {resource}");
}

async fn give_back(world: &World, mut whole: ClusterRole) {
    whole.metadata.resource_version = None;
    let name = whole.metadata.name.clone().expect("it has a name");
    roles(world).replace(&name, &PostParams::default(), &whole).await.expect("it is replaced");
}

//! The bed itself: what it starts is real, and nothing of it stays behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::aws::Hook;
use spillway_bed::life_like::life_like_cluster;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::usage::processes_naming;
use spillway_bed::{NodeOptions, World, WorldOptions, kubelet, nodes};

/// One world for all of it: each step is small, and a world takes seconds.
#[tokio::test]
async fn a_world_is_real_while_it_lasts_and_gone_after() {
    let options = WorldOptions { controllers_nice: 7, ..WorldOptions::default() };
    let world = World::start_with(options).await.unwrap();
    who_reads_a_change_stands_back_behind_who_answers(&world);
    a_request_without_a_token_is_turned_away(&world).await;
    the_first_node_of_a_life_like_cluster_has_something_of_everything(&world).await;
    a_held_pod_is_not_evicted_and_a_free_one_exits_in_its_own_time(&world).await;
    a_terminated_instance_takes_its_node_with_it(&world).await;
    a_node_is_silent_while_its_instance_is_stopped_and_back_with_another_boot_id(&world).await;
    a_node_of_a_launch_is_not_ready_until_its_kubelet_is(&world).await;
    a_kubelet_deletes_a_pod_once(&world).await;

    let dir = world.dir.clone();
    assert!(processes_naming(&dir).unwrap().len() >= 7, "the world's own processes can be counted");
    drop(world);
    assert_eq!(processes_naming(&dir).unwrap(), [], "nothing runs");
    assert!(!dir.exists(), "the folder is gone");
}

fn who_reads_a_change_stands_back_behind_who_answers(world: &World) {
    let niceness = |process: &str| -> i32 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        // The 19th field (proc(5)), the 17th after the name.
        let (_, after_name) = stat.rsplit_once(") ").unwrap();
        after_name.split(' ').nth(16).unwrap().parse().unwrap()
    };
    let behind_this_test = |program: &str| {
        let ids = running(world, program);
        let [id] = ids.as_slice() else { panic!("{program}: {ids:?}") };
        niceness(&id.to_string()) - niceness("self")
    };
    for program in ["kwok", "kube-controller-manager", "kube-scheduler"] {
        assert_eq!(behind_this_test(program), 7, "{program}");
    }
    for program in ["kube-apiserver", "etcd"] {
        assert_eq!(behind_this_test(program), 0, "{program}");
    }
}

/// The processes of one of the world's programs.
fn running(world: &World, program: &str) -> Vec<u32> {
    let path = format!("/{program}\0");
    let of_it = processes_naming(&world.dir).unwrap().into_iter().filter(|process| process.command.contains(&path));
    of_it.map(|process| process.id).collect()
}

async fn a_request_without_a_token_is_turned_away(world: &World) {
    let mut stranger = kube::Config::new(world.api_server.parse().unwrap());
    stranger.accept_invalid_certs = true;
    let pods = Api::<Pod>::all(Client::try_from(stranger).unwrap());
    let error = pods.list(&kube::api::ListParams::default()).await.unwrap_err();
    assert_eq!(code(&error), Some(401), "{error}");
}

async fn the_first_node_of_a_life_like_cluster_has_something_of_everything(world: &World) {
    let cluster = life_like_cluster(world).await.unwrap();
    let found = pods::on_node(&world.admin(), &cluster.nodes[0].name).await.unwrap();
    let apps: BTreeSet<_> = found.iter().filter_map(|pod| pod.metadata.labels.as_ref()?.get("app").cloned()).collect();
    let all = ["debug-shell", "dns", "log-agent", "migrate", "orders", "web"];
    assert_eq!(apps, all.map(str::to_owned).into());
}

async fn a_held_pod_is_not_evicted_and_a_free_one_exits_in_its_own_time(world: &World) {
    let client = world.admin();
    let node = world.add_node(NodeOptions::default()).await.unwrap();
    pods::create_namespace(&client, "held").await.unwrap();
    let slow = PodShape::default().exits_after(Duration::from_secs(5)).on_node(&node.name);
    pods::create(&client, &pods::deployment("held", "web", 2, &slow)).await.unwrap();
    pods::create(&client, &pods::budget("held", "web", 2)).await.unwrap();
    pods::create(&client, &pods::bare_pod("held", "free", &slow)).await.unwrap();
    let held = pods::until_running_of(&client, "held", "web", 2).await.unwrap();
    pods::until_running_of(&client, "held", "free", 1).await.unwrap();
    pods::until_budget_sees(&client, "held", "web", 2).await.unwrap();

    let error = evict(&client, held[0].metadata.name.as_deref().unwrap()).await.unwrap_err();
    assert_eq!(code(&error), Some(429), "{error}");

    evict(&client, "free").await.unwrap();
    let leaving = Api::<Pod>::namespaced(client, "held").get("free").await.unwrap();
    assert!(leaving.metadata.deletion_timestamp.is_some(), "it takes its time to exit");
    let begin = std::time::Instant::now();
    pods::until_gone(&world.admin(), &leaving).await.unwrap();
    assert!(begin.elapsed() < Duration::from_secs(25), "not its whole grace period");
}

async fn a_terminated_instance_takes_its_node_with_it(world: &World) {
    let aws = world.aws_side();
    aws.put_group("without-hooks", &[]).await.unwrap();
    let group = Some("without-hooks".to_owned());
    let node = world.add_node(NodeOptions { group, ..NodeOptions::default() }).await.unwrap();
    aws.terminate(&node.instance_id).await.unwrap();
    nodes::until_gone(&world.admin(), &node.name).await.unwrap();
}

async fn a_node_is_silent_while_its_instance_is_stopped_and_back_with_another_boot_id(world: &World) {
    let (aws, client) = (world.aws_side(), world.admin());
    let node = world.add_node(NodeOptions::default()).await.unwrap();
    let first = nodes::boot_id(&client, &node.name).await.unwrap();
    aws.stop(&node.instance_id).await.unwrap();
    nodes::until_not_ready(&client, &node.name).await.unwrap();
    aws.start(&node.instance_id).await.unwrap();
    nodes::until_rebooted(&client, &node.name, &first).await.unwrap();
    let second = nodes::boot_id(&client, &node.name).await.unwrap();
    aws.reboot(&node.instance_id).await.unwrap();
    nodes::until_rebooted(&client, &node.name, &second).await.unwrap();

    pods::create_namespace(&client, "rebooted").await.unwrap();
    let pod = pods::bare_pod("rebooted", "new", &PodShape::default().on_node(&node.name));
    pods::create(&client, &pod).await.unwrap();
    pods::until_running_of(&client, "rebooted", "new", 1).await.unwrap();
}

async fn a_node_of_a_launch_is_not_ready_until_its_kubelet_is(world: &World) {
    let (aws, client) = (world.aws_side(), world.admin());
    aws.put_group("launching", &[Hook::launch("ready")]).await.unwrap();
    let options = NodeOptions { group: Some("launching".to_owned()), ..NodeOptions::default() };
    let launched = aws.launch(&world.instance_request(&options)).await.unwrap();
    let state = aws.instance(&launched.instance.instance_id).await.unwrap();
    assert_eq!(state.lifecycle_state.as_deref(), Some("Pending:Wait"));
    let node = world.register(&launched.instance, &options).await.unwrap();
    nodes::until_not_ready(&client, &node.name).await.unwrap();
    kubelet::boot(&client, &node.name).await.unwrap();
    nodes::until_ready(&client, &node.name).await.unwrap();
}

async fn a_kubelet_deletes_a_pod_once(world: &World) {
    let client = world.admin();
    let node = world.add_node(NodeOptions::default()).await.unwrap();
    let names: Vec<String> = (0..10).map(|number| format!("once-{number}")).collect();
    // One after another: a second DELETE of the first is there before the last has gone.
    for name in &names {
        let pod = pods::bare_pod("held", name, &PodShape::default().on_node(&node.name));
        let pod = pods::create(&client, &pod).await.unwrap();
        pods::until_running_of(&client, "held", name, 1).await.unwrap();
        evict(&client, name).await.unwrap();
        pods::until_gone(&client, &pod).await.unwrap();
    }
    let deletes = |requests: &[Request]| {
        let of = |name: &String| requests.iter().filter(|one| one.verb == "delete" && one.name == *name).count();
        names.iter().map(of).collect::<Vec<_>>()
    };
    // The API server logs a request after its answer: the last pod may be gone first.
    let all_are_logged = |requests: &[Request]| !deletes(requests).contains(&0);
    let mut audit = AuditLog::of_user(&world.audit_log, "kwok");
    let requests = audit.wait_until("each deletion", Duration::from_secs(30), all_are_logged).await.unwrap();
    assert_eq!(deletes(&requests), [1; 10]);
}

async fn evict(client: &Client, pod: &str) -> kube::Result<()> {
    let metadata = ObjectMeta { name: Some(pod.to_owned()), ..ObjectMeta::default() };
    let eviction = Eviction { metadata, ..Eviction::default() };
    let pods = Api::<Pod>::namespaced(client.clone(), "held");
    let answer: kube::Result<serde_json::Value> =
        pods.create_subresource("eviction", pod, &PostParams::default(), &eviction).await;
    answer.map(drop)
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

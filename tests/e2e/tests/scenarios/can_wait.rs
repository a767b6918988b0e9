//! Drains that can wait have invocations of their own number (`PatientSlots`), so that a notice that cannot wait finds one.
//!
//! Two of these tests wait for minutes. Tests begin by name, so this file has one that begins early.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use spillway_bed::aws::{Fault, Hook};
use spillway_bed::lambda::{LambdaOptions, Outcome};
use spillway_bed::patient::Patient;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, TestNode, World};
use spillway_e2e::{sample, the_one, world};
use tokio::time::timeout;

/// Longer than what is waited for takes on a machine with much else to do.
const WAIT: Duration = Duration::from_mins(4);

/// A group's nodes, on each of which a pod runs that no budget lets go, and the function.
struct Blocked {
    world: &'static World,
    name: &'static str,
    nodes: Vec<TestNode>,
    patient: Patient,
}

impl Blocked {
    async fn set(name: &'static str, nodes: usize, heartbeat: Duration, slots: usize, limit: Option<usize>) -> Self {
        let world = world().await;
        let client = world.admin();
        let hook = Hook::terminate("spillway").heartbeat_timeout(heartbeat);
        world.aws_side().put_group(name, &[hook]).await.expect("the group is new");
        pods::create_namespace(&client, name).await.expect("the namespace is new");
        let of_group = || NodeOptions { group: Some(name.to_owned()), ..NodeOptions::default() };
        let each = (0..nodes).map(async |number| {
            let node = world.add_node(of_group()).await.expect("the node joins");
            let shape = PodShape::default().on_node(&node.name);
            pods::run_deployment(&client, name, &format!("db-{number}"), 1, &shape).await.expect("its pod runs");
            node
        });
        let joined = join_all(each).await;
        let budget =
            json!({"metadata": {"namespace": name, "name": "none"}, "spec": {"maxUnavailable": 0, "selector": {}}});
        let budget: PodDisruptionBudget = serde_json::from_value(budget).expect("it is a budget");
        pods::create(&client, &budget).await.expect("it is created");
        let all = i32::try_from(nodes).expect("a few");
        pods::until_budget_sees(&client, name, "none", all).await.expect("it counts");
        let options =
            LambdaOptions { function_name: name.to_owned(), reserved_concurrency: limit, ..LambdaOptions::default() };
        let patient = Patient::deploy(world, options, slots).await.expect("it is deployed");
        Self { world, name, nodes: joined, patient }
    }

    /// Auto Scaling terminates all of them; the function puts each drain into the queue.
    async fn terminate(&self) {
        let each = self.nodes.iter().map(|node| async {
            let event = the_one(self.world.aws_side().terminate(&node.instance_id).await.expect("it terminates"));
            let delivery = self.patient.lambda.invoke_async(event).await.expect("the queue works");
            assert_eq!(ending(&delivery.last), "continued", "{delivery:#?}");
        });
        join_all(each).await;
    }

    /// Waits until each of them was looked at so often by an invocation that the queue began.
    async fn until_looked_at(&self, times: usize) {
        let looked_at = self.patient.until(|outcomes| {
            let mut looks: BTreeMap<&str, usize> = BTreeMap::new();
            for outcome in outcomes {
                let answer = match &outcome.result {
                    Ok(answer) => answer,
                    // The queue hands it over again.
                    Err(error) if error.error_type == "TooManyRequestsException" => continue,
                    Err(error) => panic!("{error:#?}"),
                };
                *looks.entry(answer["instance"].as_str().unwrap_or_default()).or_default() += 1;
            }
            self.nodes.iter().all(|node| looks.get(&*node.instance_id).is_some_and(|looks| *looks >= times))
        });
        timeout(WAIT, looked_at).await.unwrap_or_else(|_| panic!("{:#?}", self.patient.outcomes()));
    }
}

fn ending(outcome: &Outcome) -> String {
    outcome.result.as_ref().map_or_else(ToString::to_string, |answer| answer["ending"].to_string().replace('"', ""))
}

/// Twenty drains that wait for their hooks' hour, with seven invocations in all.
#[tokio::test]
async fn a_spot_notice_finds_an_invocation_beside_many_blocked_hooks() {
    let blocked = Blocked::set("patient", 20, Duration::from_secs(120), 2, Some(7)).await;
    let world = blocked.world;
    let spot = NodeOptions { spot: true, ..NodeOptions::default() };
    let spots = [(); 5].map(|()| world.add_node(spot.clone()));
    let spots: Vec<_> = join_all(spots).await.into_iter().map(|node| node.expect("the node joins")).collect();
    blocked.terminate().await;
    blocked.until_looked_at(2).await;

    let drained = spots.iter().map(|node| async {
        let event = the_one(
            world.aws_side().interrupt(&node.instance_id, Duration::from_secs(120)).await.expect("EC2 interrupts"),
        );
        blocked.patient.lambda.invoke_async(event).await.expect("the queue works")
    });
    for delivery in join_all(drained).await {
        assert_eq!(ending(&delivery.last), "drained", "{delivery:#?}");
        assert!(delivery.waits.iter().sum::<Duration>() <= Duration::from_secs(2), "{:?}", delivery.waits);
    }

    for node in &blocked.nodes {
        let instance = world.aws_side().instance(&node.instance_id).await.expect("it is known");
        let action = &instance.actions[0];
        assert_eq!(action.ended_by, None, "the hook is held while its drain is parked: {action:?}");
    }
}

#[tokio::test]
async fn a_parked_drain_goes_on_when_its_budget_lets_go() {
    let blocked = Blocked::set("parked", 3, Duration::from_secs(60), 1, None).await;
    blocked.terminate().await;
    blocked.until_looked_at(2).await;

    let budgets = Api::<PodDisruptionBudget>::namespaced(blocked.world.admin(), blocked.name);
    budgets.delete("none", &DeleteParams::default()).await.expect("it is deleted");

    let drained = |outcomes: &Vec<Outcome>| outcomes.iter().filter(|one| ending(one) == "drained").count() == 3;
    let waited = timeout(WAIT, blocked.patient.until(drained)).await;
    waited.unwrap_or_else(|_| panic!("{:#?}", blocked.patient.outcomes()));
    for node in &blocked.nodes {
        let instance = blocked.world.aws_side().instance(&node.instance_id).await.expect("it is known");
        assert_eq!(instance.actions[0].result.as_deref(), Some("CONTINUE"));
    }
    for outcome in blocked.patient.outcomes().iter().filter(|one| ending(one) == "drained") {
        let answer = outcome.result.as_ref().expect("it drained");
        assert_eq!(answer["earlier"].as_array().map(Vec::len), Some(1), "parking counts once: {answer:#}");
    }
}

#[tokio::test]
async fn a_drain_that_the_queue_does_not_take_is_drained_at_once() {
    let blocked = Blocked::set("no-queue", 1, Duration::from_secs(120), 1, None).await;
    let budgets = Api::<PodDisruptionBudget>::namespaced(blocked.world.admin(), blocked.name);
    budgets.delete("none", &DeleteParams::default()).await.expect("it is deleted");
    let lambda = &blocked.patient.lambda;
    let denied = Fault {
        status: Some(403),
        code: Some("AccessDenied".to_owned()),
        ..Fault::of(lambda.access_key_id(), "sqs", "SendMessage")
    };
    blocked.world.aws_side().add_fault(&denied).await.expect("a fault");

    let instance = &blocked.nodes[0].instance_id;
    let event = the_one(blocked.world.aws_side().terminate(instance).await.expect("it terminates"));
    let outcome = lambda.invoke(event).await;

    assert_eq!(ending(&outcome), "drained", "{outcome:#?}");
    let told = outcome.logs.iter().any(|line| line.contains("the queue of drains that can wait takes no message"));
    assert!(told, "{:#?}", outcome.logs);
}

#[tokio::test]
async fn the_doctor_finds_a_queue_that_nobody_fetches_from() {
    let world = world().await;
    let name = "not-fetched";
    let options = LambdaOptions { function_name: name.to_owned(), ..LambdaOptions::default() };
    let patient = Patient::deploy(world, options, 1).await.expect("it is deployed");
    let lambda = &patient.lambda;
    let found = async || {
        let outcome = lambda.invoke(&sample("doctor")).await;
        let checks = outcome.result.as_ref().expect("a report")["checks"].clone();
        let check = checks.as_array().expect("checks").iter().find(|check| check["id"] == "patient-queue").cloned();
        let check = check.expect("it is looked at");
        (check["status"].clone(), check["findings"][0].clone())
    };
    let aws = world.aws_side();
    assert_eq!(found().await, (json!("ok"), json!(null)));

    aws.change_mapping(name, Some("Disabled")).await.expect("it is there");
    let (status, finding) = found().await;
    assert_eq!((status, &finding["id"]), (json!("fail"), &json!("queue-not-fetched")));
    let command = finding["command"].as_str().expect("a command");
    assert!(command.starts_with("aws lambda update-event-source-mapping --uuid "), "{command}");

    aws.change_mapping(name, None).await.expect("it is there");
    assert_eq!(found().await.1["id"], "queue-not-fetched");

    let denied = Fault {
        status: Some(403),
        code: Some("AccessDeniedException".to_owned()),
        ..Fault::of(lambda.access_key_id(), "lambda", "ListEventSourceMappings")
    };
    aws.add_fault(&denied).await.expect("a fault");
    assert_eq!(found().await.1["id"], "mappings-unknown");
}

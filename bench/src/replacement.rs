//! Replacement first: seconds from a spot notice to the request, and until all evicted pods run again, with it and without.
//!
//! Instances of the bed have no boot of their own: a node joins a minute after its launch. Without a replacement the group
//! launches when EC2 ends the old instance, which is the best case.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use spillway_bed::aws::{Hook, Instance};
use spillway_bed::lambda::{Lambda, LambdaOptions};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{BedError, NodeOptions, World};
use tokio::time::{Instant, sleep};

const NAMESPACE: &str = "replacement";
const TAG: (&str, &str) = ("spillway:replace", "true");
const PODS: u32 = 20;
const NOTICE: Duration = Duration::from_secs(120);
/// Time from a launch to the node.
const BOOT: Duration = Duration::from_mins(1);

/// Seconds from the notice.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Replacement {
    requested: f64,
    running: f64,
    running_without: f64,
}

impl Replacement {
    /// Measures one interruption with a replacement, and one without.
    pub(crate) async fn of(drain: &Path) -> Result<Self, BedError> {
        let world = World::start().await?;
        pods::create_namespace(&world.admin(), NAMESPACE).await?;
        let (requested, running) = interrupt(&world, drain, "spot").await?;
        let (_, running_without) = interrupt(&world, drain, "off").await?;
        let missing = || BedError::NotMeasured { wanted: "a replacement".to_owned(), seen: "none".to_owned() };
        let requested = requested.ok_or_else(missing)?;
        Ok(Self { requested, running, running_without })
    }

    pub(crate) fn in_words(self) -> String {
        let Self { requested, running, running_without } = self;
        format!(
            "Replacement first: the request {requested:.1} s after a spot notice; {PODS} evicted pods run again after \
             {running:.0} s, without it after {running_without:.0} s (a node joins {} s after its launch).\n",
            BOOT.as_secs()
        )
    }
}

/// The seconds to the request, and until all pods run again.
async fn interrupt(world: &World, drain: &Path, replace: &str) -> Result<(Option<f64>, f64), BedError> {
    let (client, aws, name) = (world.admin(), world.aws_side(), format!("replacement-{replace}"));
    aws.put_tagged_group(&name, &[Hook::terminate("spillway")], &[TAG]).await?;
    let one = |(key, value): (&str, &str)| [(key.to_owned(), value.to_owned())].into();
    let options = NodeOptions {
        group: Some(name.clone()),
        spot: true,
        labels: one(("group", &name)),
        tags: one(TAG),
        ..NodeOptions::default()
    };
    let old = world.add_node(options.clone()).await?;
    let shape = PodShape::default().with(json!({"spec": {"nodeSelector": {"group": name}}}));
    // Without the scheduling gate of `run_deployment`, which holds the pods that replace the evicted ones.
    pods::create(&client, &pods::deployment(NAMESPACE, &name, PODS, &shape)).await?;
    pods::until_running_of(&client, NAMESPACE, &name, PODS as usize).await?;
    let env = one(("SPILLWAY_REPLACE", replace));
    let binary = drain.to_owned();
    let function = LambdaOptions { binary, function_name: name.clone(), env, ..LambdaOptions::default() };
    let lambda = Lambda::start(world, function).await?;

    let began = Instant::now();
    let mut notices = aws.interrupt(&old.instance_id, NOTICE).await?;
    let drained = lambda.invoke(notices.remove(0).event);
    let hook = async {
        if replace == "off" {
            return Ok(());
        }
        let notice = aws.wait_for_delivery(&old.instance_id).await?;
        lambda.invoke(notice.event).await;
        Ok::<_, BedError>(())
    };
    let running = async {
        let mut requested = None;
        while requested.is_none() && began.elapsed() < NOTICE {
            requested = aws.launched(&name).await?["launched"].get(0).cloned().map(|one| (began.elapsed(), one));
            sleep(Duration::from_millis(20)).await;
        }
        sleep(BOOT).await;
        let new = match &requested {
            Some((_, instance)) => {
                let instance: Instance = serde_json::from_value(instance.clone()).expect("the bed's own");
                world.join(&instance, &options).await?
            }
            None => world.add_node(options.clone()).await?,
        };
        pods::until_running_on(&client, &new.name, PODS as usize).await?;
        let requested = requested.map(|(after, _)| after.as_secs_f64());
        Ok::<_, BedError>((requested, began.elapsed().as_secs_f64()))
    };
    let (_, hook, seconds) = tokio::join!(drained, hook, running);
    hook?;
    seconds
}

//! The world with the function in it, and a plan's way through it until all is quiet.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use spillway_bed::audit::AuditLog;
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Gateway, Rules};
use spillway_bed::lambda::{Lambda, LambdaOptions};
use spillway_bed::{BedError, World, pods};
use tokio::time::{Instant, interval, sleep_until, timeout};

use super::life::{self, NAME};
use super::plan::{Life, Plan};
use super::post::Post;
use super::trouble::{Trouble, Troublemaker};
use super::verdict::{self, Seen};
use super::{Counts, say};

/// The settings that are not as by default: shorter, so that minutes are enough.
const SETTINGS: [(&str, &str); 4] = [
    ("SPILLWAY_DRAIN_ON", "spot,capacity,maintenance,state-change,terminate,rebalance"),
    ("SPILLWAY_REBALANCE_WINDOW_S", "30"),
    ("SPILLWAY_MAINTENANCE_LEAD_S", "25"),
    ("SPILLWAY_HOOK_MAX_WAIT_S", "60"),
];
/// So short that some drains go on in the next invocation.
const INVOCATION: Duration = Duration::from_secs(40);
/// Lambda tries again after three seconds and after six: longer than most of what goes wrong.
const WAIT_FACTOR: f64 = 0.05;
/// The shortest that Auto Scaling has.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);
/// No life takes longer that comes to its end.
const LIMIT: Duration = Duration::from_mins(8);
const FORWARD_EVERY: Duration = Duration::from_millis(250);

/// What came of a plan.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) seen: Seen,
    /// What went wrong, how often.
    pub(super) troubles: Counts,
    /// How many requests the faults among it struck.
    pub(super) struck: usize,
    /// The function's log. It is kept if there is a violation.
    pub(super) log: PathBuf,
}

/// Starts a world, and lets everything happen there.
pub(super) async fn go_through(plan: &Plan) -> Result<Came, BedError> {
    say(&format!("starting the world for {} notices to {} nodes", plan.notices(), plan.lives.len()));
    let world = World::start().await?;
    let rules = Rules::default();
    let aws = Gateway::before_aws(&world, rules.clone())?;
    let kubernetes = Gateway::before_api_server(&world, rules.clone())?;
    let lambda = Lambda::start(&world, options(&aws)).await?;
    kubernetes.show(&world, lambda.access_key_id()).await?;
    pods::create_namespace(&world.admin(), NAME).await?;
    let hooks = [Hook::terminate("spillway").heartbeat_timeout(HEARTBEAT_TIMEOUT)];
    world.aws_side().put_group(NAME, &hooks).await?;
    let post = Arc::new(Post::open(&world, lambda.clone())?);

    let maker = Troublemaker { world: &world, lambda: &lambda, kubernetes: &kubernetes, aws: &aws };
    let begin = Instant::now();
    let lives = async {
        let mut seen = live_all(&world, &post, &plan.lives, begin).await?;
        post.until_all_idle().await?;
        seen.handed = post.handed()?;
        seen.given_up = given_up(&world).await?;
        // What was answered is written down before the answer leaves.
        seen.requests =
            AuditLog::of_user(&world.audit_log, &format!("assumed-role/spillway-drain/{NAME}")).requests()?;
        Ok::<_, BedError>(seen)
    };
    let (seen, troubles) = tokio::select! {
        both = async { tokio::try_join!(lives, make_all(&maker, &plan.troubles, begin)) } => both?,
        Err(error) = forward(&post) => return Err(error),
    };
    if !verdict::of(&seen).violations.is_empty() {
        world.keep_logs();
    }
    Ok(Came { seen, troubles, struck: rules.struck(), log: post.log().to_owned() })
}

fn options(aws: &Gateway) -> LambdaOptions {
    let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let endpoint = ("AWS_ENDPOINT_URL".to_owned(), aws.url());
    LambdaOptions {
        function_name: NAME.to_owned(),
        env: settings.into_iter().chain([endpoint]).collect(),
        timeout: INVOCATION,
        wait_factor: WAIT_FACTOR,
        ..LambdaOptions::default()
    }
}

async fn live_all(world: &World, post: &Arc<Post>, lives: &[Life], begin: Instant) -> Result<Seen, BedError> {
    let one = async |life: &Life| {
        sleep_until(begin + life.begins).await;
        timeout(LIMIT, life::live(world, post, life))
            .await
            .map_err(|_| format!("node {}, {:?}", life.number, life.story))
    };
    let mut ended: FuturesUnordered<_> = lives.iter().map(one).collect();
    let mut seen = Seen::default();
    while let Some(next) = ended.next().await {
        match next {
            Ok(ended) => seen.nodes.push(ended?),
            Err(restless) => seen.restless.push(restless),
        }
        let count = seen.nodes.len() + seen.restless.len();
        if count.is_multiple_of(25) {
            say(&format!("{count} of {} nodes have come and gone", lives.len()));
        }
    }
    Ok(seen)
}

/// Makes all troubles at their times, beside each other; answers how often each came.
async fn make_all(
    maker: &Troublemaker<'_>,
    troubles: &[(Duration, Trouble)],
    begin: Instant,
) -> Result<Counts, BedError> {
    let one = async |(at, trouble): &(Duration, Trouble)| {
        sleep_until(begin + *at).await;
        Ok::<_, BedError>(maker.make(*trouble).await?.then(|| trouble.in_words()))
    };
    let mut made: FuturesUnordered<_> = troubles.iter().map(one).collect();
    let mut counts = Counts::new();
    while let Some(next) = made.next().await {
        if let Some(name) = next? {
            *counts.entry(name).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Hands the function what it has itself invoked with. Never returns but in error.
async fn forward(post: &Arc<Post>) -> Result<(), BedError> {
    let mut now = interval(FORWARD_EVERY);
    loop {
        now.tick().await;
        post.forward().await?;
    }
}

/// The ids of the requests whose records are in the failure queue: all attempts of a delivery have one.
async fn given_up(world: &World) -> Result<BTreeSet<String>, BedError> {
    let records = world.aws_side().failures().await?;
    let records = records.iter().filter_map(|record| serde_json::from_str::<Value>(record).ok());
    Ok(records.filter_map(|record| record["requestContext"]["requestId"].as_str().map(str::to_owned)).collect())
}

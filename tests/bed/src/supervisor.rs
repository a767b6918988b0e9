//! The life of a world: everything up, kept, and all of it gone again, whatever ends it.

use std::io::Write as _;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::{try_join, try_join_all};
use tokio::sync::Notify;

use crate::aws::Aws;
use crate::cloud::{self, Cloud};
use crate::cluster::Cluster;
use crate::control_plane;
use crate::error::BedError;
use crate::layout::{ACCOUNT, ClusterLayout, Layout, REGION};
use crate::world::{KEEP_LOGS, Report, WorldOptions};

/// Must run on the main thread's runtime: the processes die with the thread that started them.
pub async fn up(options: WorldOptions) -> ExitCode {
    let stdin = Arc::new(Stdin::default());
    let reader = Arc::clone(&stdin);
    // A thread of its own, not tokio's stdin: a read under way would hold up the end.
    std::thread::spawn(move || reader.read_to_its_end());
    let layout = match Layout::new(options) {
        Ok(layout) => layout,
        Err(error) => return fail(&error),
    };
    let outcome = tokio::select! {
        () = stdin.closed.notified() => Ok(()),
        Err(error) = live(&layout) => Err(error),
    };

    layout.processes.stop().await;
    match layout.remove(outcome.is_err() || stdin.keep_logs.load(Ordering::Relaxed)) {
        Ok(None) => {}
        Ok(Some(logs)) => eprintln!("the test bed's logs are kept in {}", logs.display()),
        Err(error) => eprintln!("{}", error.story()),
    }
    outcome.map_or_else(|error| fail(&error), |()| ExitCode::SUCCESS)
}

/// Starts the world and keeps it. Returns only when it cannot be kept.
async fn live(layout: &Layout) -> Result<std::convert::Infallible, BedError> {
    let clusters = layout.clusters()?;
    let sign_in = async {
        let cloud = cloud::start(layout).await?;
        try_join_all(clusters.iter().map(|cluster| control_plane::start_authenticator(cluster, &cloud))).await?;
        Ok(cloud)
    };
    let (admins, cloud) = try_join(try_join_all(clusters.iter().map(control_plane::start)), sign_in).await?;
    try_join_all(clusters.iter().map(|cluster| cloud::register_cluster(cluster, &cloud))).await?;
    if let Some(error) = layout.processes.any_failure().now_or_never() {
        return Err(error);
    }

    let descriptions: Vec<_> = clusters.iter().map(|cluster| describe(layout, cluster, &cloud)).collect();
    report(&Report::Ready(descriptions));
    let following = pin!(cloud::follow_instances(Aws::new(&cloud.url), admins));
    tokio::select! {
        error = layout.processes.any_failure() => {
            // The program has its line from stdout and reads no more of them.
            eprintln!("{}", error.story());
            Err(error)
        }
        never = following => match never {},
    }
}

fn describe(layout: &Layout, cluster: &ClusterLayout<'_>, cloud: &Cloud) -> Cluster {
    Cluster {
        dir: layout.dir().to_owned(),
        logs: layout.logs.clone(),
        aws: cloud.url.clone(),
        region: REGION.to_owned(),
        account: ACCOUNT.to_owned(),
        cluster: cluster.name.to_owned(),
        kubeconfig: control_plane::admin_kubeconfig(cluster),
        api_server: control_plane::url(cluster),
        ca: cluster.path("ca.pem"),
        audit_log: control_plane::audit_log(cluster),
        kubectl: layout.setup.program("kubectl"),
        admin: None,
    }
}

fn fail(error: &BedError) -> ExitCode {
    report(&Report::Failed { error: error.story() });
    ExitCode::FAILURE
}

/// The one line on stdout; a reader that is gone needs none.
fn report(report: &Report) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{}", serde_json::json!(report));
    let _ = stdout.flush();
}

/// The program that holds the world, at the other end: when that closes, the world ends.
#[derive(Default)]
struct Stdin {
    closed: Notify,
    keep_logs: AtomicBool,
}

impl Stdin {
    fn read_to_its_end(&self) {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if line == KEEP_LOGS {
                self.keep_logs.store(true, Ordering::Relaxed);
            }
        }
        self.closed.notify_one();
    }
}

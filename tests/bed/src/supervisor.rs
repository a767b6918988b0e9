//! The life of a world: everything up, kept, and all of it gone again, whatever ends it.

use std::io::Write as _;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::{try_join, try_join_all};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::aws::Aws;
use crate::cloud::{self, Cloud};
use crate::cluster::Cluster;
use crate::control_plane;
use crate::error::BedError;
use crate::layout::{ACCOUNT, ClusterLayout, Layout, REGION};
use crate::world::{KEEP_LOGS, Report, WorldOptions};

/// Who holds the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Someone at a terminal, until Ctrl-C.
    Person,
    /// A program at the other end of stdin, until that closes.
    Program,
}

/// Must run on the main thread's runtime: the processes die with the thread that started them.
pub async fn up(options: WorldOptions, holder: Holder) -> ExitCode {
    let mut end = match End::watched(holder) {
        Ok(end) => end,
        Err(error) => return fail(holder, &BedError::io("watch for signals")(error)),
    };
    let layout = match Layout::new(options) {
        Ok(layout) => layout,
        Err(error) => return fail(holder, &error),
    };
    let outcome = tokio::select! {
        () = end.comes() => Ok(()),
        Err(error) = live(&layout, holder) => Err(error),
    };

    layout.processes.stop().await;
    match layout.remove(outcome.is_err() || end.keep_logs()) {
        Ok(None) => {}
        Ok(Some(logs)) => eprintln!("the test bed's logs are kept in {}", logs.display()),
        Err(error) => eprintln!("{}", error.story()),
    }
    outcome.map_or_else(|error| fail(holder, &error), |()| ExitCode::SUCCESS)
}

/// Starts the world and keeps it. Returns only when it cannot be kept.
async fn live(layout: &Layout, holder: Holder) -> Result<std::convert::Infallible, BedError> {
    let begin = Instant::now();
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
    layout.write("bed.json", &serde_json::json!(descriptions).to_string())?;
    match holder {
        Holder::Program => report(&Report::Ready(descriptions)),
        Holder::Person => {
            println!("The test bed is up ({:.1} s). In another terminal:\n", begin.elapsed().as_secs_f64());
            for description in &descriptions {
                println!("{}\n", description.how_to_use());
            }
            println!("Ctrl-C ends it and removes everything.");
        }
    }
    let following = pin!(cloud::follow_instances(Aws::new(&cloud.url), admins));
    tokio::select! {
        error = layout.processes.any_failure() => {
            // The program has its line from stdout and reads no more of them.
            if holder == Holder::Program {
                eprintln!("{}", error.story());
            }
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

fn fail(holder: Holder, error: &BedError) -> ExitCode {
    match holder {
        Holder::Program => report(&Report::Failed { error: error.story() }),
        Holder::Person => eprintln!("{}", error.story()),
    }
    ExitCode::FAILURE
}

/// The one line on stdout; a reader that is gone needs none.
fn report(report: &Report) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{}", serde_json::json!(report));
    let _ = stdout.flush();
}

/// What ends a world from outside: a signal, or the program at the other end of stdin.
struct End {
    signals: [tokio::signal::unix::Signal; 3],
    stdin: Arc<Stdin>,
}

#[derive(Default)]
struct Stdin {
    closed: Notify,
    keep_logs: AtomicBool,
}

impl End {
    fn watched(holder: Holder) -> std::io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        let stdin = Arc::new(Stdin::default());
        if holder == Holder::Program {
            // A thread of its own, not tokio's stdin: a read under way would hold up the end.
            let stdin = Arc::clone(&stdin);
            std::thread::spawn(move || stdin.read_to_its_end());
        }
        Ok(Self { signals: [interrupt?, terminate?, hangup?], stdin })
    }

    async fn comes(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            () = self.stdin.closed.notified() => {}
        }
    }

    fn keep_logs(&self) -> bool {
        self.stdin.keep_logs.load(Ordering::Relaxed)
    }
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

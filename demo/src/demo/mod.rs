//! The demo: a node drained for each of two notices, or for one from a file, told as it happens.
//!
//! # Layout
//! * this file: the story, from nothing to nothing;
//! * `act`: one notice, from the bus to its receipt;
//! * `live`: what happens in the cluster, as it happens, above `scene`, which puts it into words;
//! * `table`, `notice`, `receipt`: the cluster, the event and the receipt for a person to read;
//! * `picture`: the receipt for a browser;
//! * `screen`: lines, and colours where there is a terminal.

mod act;
mod live;
mod notice;
mod picture;
mod receipt;
mod scene;
mod screen;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::Value;
use spillway_bed::lambda::{Lambda, LambdaOptions};
use spillway_bed::life_like::life_like_cluster;
use spillway_bed::{BedError, World};

use act::{Act, Stage};
use scene::Tone;
use screen::Screen;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DemoOptions {
    /// Sends this file's event instead of the two notices.
    #[arg(long)]
    event: Option<PathBuf>,
    /// The function to run; the dev build beside this program when absent.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Why there is no demo, or no end of it.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error("cannot send {}: {why}", file.display())]
    Event { file: PathBuf, why: String },

    #[error("there is no function at {}; run `make demo`, which builds it", path.display())]
    NoFunction { path: PathBuf },

    #[error("no rule of template.yaml lets the {0} through")]
    NoRule(&'static str),

    #[error("{}", .0.story())]
    Bed(#[from] BedError),
}

/// What exit codes say of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

pub(crate) async fn run(options: DemoOptions) -> ExitCode {
    let screen = Screen::of_stdout();
    let told = tokio::select! {
        told = tell(&screen, options) => told,
        // What was going on is dropped here, and with it the bed, which cleans up.
        _ = tokio::signal::ctrl_c() => return ExitCode::from(INTERRUPTED),
    };
    match told {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Answers whether all went well.
async fn tell(screen: &Screen, options: DemoOptions) -> Result<bool, DemoError> {
    // Whatever is wrong with the options is said before anything is started.
    let event = options.event.as_deref().map(notice::read).transpose()?;
    let function = function(options.binary)?;
    let mut parts = Parts::begin();

    screen.heading("Spillway: what happens to an EKS node's pods when AWS takes the node away");
    screen.say(
        "Real: the Kubernetes control plane, its checks of tokens and rights, the template's rules, the function. \
         Played: the nodes (kwok), AWS (moto and stand-ins), and Lambda, which runs the function over its Runtime API.",
    );
    screen.heading("1  The test bed");
    screen.say("etcd, API server, controller manager, scheduler, kwok, aws-iam-authenticator and moto start.");
    let world = World::start().await?;
    screen.say(&format!("The bed is ready after {}.", parts.over("the test bed starts")));

    let played = play(screen, &world, function, event, &mut parts).await;
    if !matches!(played, Ok(true)) {
        world.keep_logs();
        screen.gap();
        screen.say_in(Tone::Bad, "It did not go well.");
        if world.logs.join(act::LOG).exists() {
            screen.say(&format!("What the function logged is with the bed's own logs, in {}:", act::LOG));
        }
    }
    drop(world);
    parts.over("all of it is stopped and removed");
    if matches!(played, Ok(true)) {
        end(screen, &parts);
    }
    played
}

async fn play(
    screen: &Screen,
    world: &World,
    function: LambdaOptions,
    event: Option<Value>,
    parts: &mut Parts,
) -> Result<bool, DemoError> {
    screen.heading("2  A small cluster");
    screen.say("Three instances join it as nodes; then come its pods.");
    let cluster = life_like_cluster(world).await?;
    let stage = Stage { screen, world, cluster, lambda: Lambda::start(world, function).await? };
    stage.show().await?;
    screen.say(&format!("All of it runs after {}.", parts.over("a small cluster comes up")));

    let acts = match event {
        Some(event) => vec![Act::File(event)],
        None => vec![Act::Spot, Act::Terminate],
    };
    for (number, act) in (3..).zip(acts) {
        let name = act.name();
        screen.heading(&format!("{number}  {}", act.title(&stage.cluster)));
        let went_well = stage.play(act).await?;
        let took = parts.over(name);
        if !went_well {
            return Ok(false);
        }
        screen.say(&format!("This part took {took}."));
    }
    Ok(true)
}

fn end(screen: &Screen, parts: &Parts) {
    screen.heading("How long each part took");
    screen.show(&parts.listed());
    screen.heading("What to try next");
    screen.show(
        &[
            ("make demo EVENT=events/spot-interruption.json", "sends the event of a file, yours too"),
            ("make bed", "keeps a bed up for you to play with"),
            ("make doctor", "looks whether the next notice would be handled"),
            ("make test", "runs everything, on such beds"),
        ]
        .map(|(command, what)| format!("{command:<48}{what}")),
    );
}

fn function(binary: Option<PathBuf>) -> Result<LambdaOptions, DemoError> {
    let mut options = LambdaOptions::default();
    let named = binary.unwrap_or(options.binary);
    // It is started in its own folder, where a relative path would mean another file.
    options.binary = named.canonicalize().map_err(|_| DemoError::NoFunction { path: named })?;
    Ok(options)
}

/// The parts of the demo and how long each took.
struct Parts {
    begun: Instant,
    last: Instant,
    done: Vec<(&'static str, Duration)>,
}

impl Parts {
    fn begin() -> Self {
        let now = Instant::now();
        Self { begun: now, last: now, done: Vec::new() }
    }

    /// Ends a part, and answers how long it took.
    fn over(&mut self, name: &'static str) -> String {
        let now = Instant::now();
        let took = now - std::mem::replace(&mut self.last, now);
        self.done.push((name, took));
        seconds(took)
    }

    fn listed(&self) -> Vec<String> {
        let whole = ("in all", self.last - self.begun);
        let parts = self.done.iter().chain([&whole]);
        parts.map(|(name, took)| format!("{name:<40}{:>7}", seconds(*took))).collect()
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

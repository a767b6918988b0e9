use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use super::plan::Plan;
use super::{Counts, Ran, SOMETIMES, World};

/// How many seeds `make test` runs, in two minutes on two cores: a fourth are the same each time, and the rest fresh.
const SEEDS: u64 = 4000;
/// A run of so many seeds has seen all that happens sometimes.
const ENOUGH: u64 = 10_000;
/// How many worlds may fail until it is enough.
const MOST_FAILURES: usize = 20;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("it is a number"))
}

/// The worlds that have failed once, with all that was drawn for them.
fn kept() -> Vec<World> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kept");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> World {
    let world = std::fs::read_to_string(file).and_then(|text| Ok(serde_json::from_str(&text)?));
    world.unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Writes down a world, so that it can be run again when something is drawn in another way.
fn write(world: &World) -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let folder = cache.unwrap_or_else(std::env::temp_dir).join("spillway/worlds");
    let file = folder.join(format!("{}.json", world.seed));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&file, serde_json::to_string_pretty(world).unwrap() + "\n").unwrap();
    file
}

/// Runs these worlds on all cores; if some fail, prints the history of one.
fn check(worlds: &[World]) -> [Counts; 2] {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let all = Mutex::new([const { Counts::new() }; 2]);
    let work = || {
        while let Some(world) = worlds.get(next.fetch_add(1, Relaxed))
            && failed.lock().unwrap().len() < MOST_FAILURES
        {
            let ran = world.run(false);
            let [seen, most] = &mut *all.lock().unwrap();
            for (what, count) in ran.seen {
                *seen.entry(what).or_default() += count;
            }
            for (what, count) in ran.most {
                let most = most.entry(what).or_default();
                *most = (*most).max(count);
            }
            if !ran.broken.is_empty() {
                failed.lock().unwrap().push((world, ran.broken));
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    let failed = failed.into_inner().unwrap();
    if let Some((world, _)) = failed.first() {
        println!("{}\n", world.run(true).history);
    }
    let told = failed.iter().map(|(world, broken)| {
        let (seed, file) = (world.seed, write(world));
        format!(
            "seed {seed} breaks what must hold:\n  {}\n  to keep it: cp {} tests/simulation/kept/",
            broken.join("\n  "),
            file.display()
        )
    });
    assert!(failed.is_empty(), "{}", told.collect::<Vec<_>>().join("\n"));
    all.into_inner().unwrap()
}

/// What has happened how often, and what has not that was to.
fn table(seen: &Counts) -> String {
    let mut all: BTreeMap<&str, u64> = SOMETIMES.iter().map(|what| (*what, 0)).collect();
    all.extend(seen.iter().map(|(what, count)| (what.as_str(), *count)));
    all.iter().map(|(what, count)| format!("{count:>12}  {what}\n")).collect()
}

#[test]
fn whatever_happens_what_must_hold_holds() {
    if let Ok(file) = std::env::var("WORLD") {
        return hold(&read(Path::new(&file)));
    }
    if let Some(seed) = number("SEED") {
        return hold(&World::of(seed));
    }
    let count = number("SEEDS").unwrap_or(SEEDS);
    let from = number("FROM").unwrap_or_else(|| u64::from(fastrand::u32(..)));
    let same = if number("FROM").is_some() { 0 } else { count / 4 };
    println!("the worlds that are kept, and the seeds 0 to {same} and {from} to {}", from + count - same);
    let worlds = kept().into_iter().chain((0..same).chain(from..from + count - same).map(World::of));
    let [seen, most] = check(&worlds.collect::<Vec<_>>());
    println!("{}", table(&seen));
    most.iter().for_each(|(what, count)| println!("{count:>12}  {what}, at most"));
    let never: Vec<_> = SOMETIMES.iter().filter(|what| !seen.contains_key(**what)).collect();
    assert!(count < ENOUGH || never.is_empty(), "never in {count} seeds: {never:?}");
}

/// Runs a world, with its history.
fn hold(world: &World) {
    let ran = world.run(true);
    println!("{}", ran.history);
    assert!(ran.broken.is_empty(), "seed {} breaks what must hold:\n{}", world.seed, ran.broken.join("\n"));
}

/// What must hold for forty nodes of one group and zone with the same maintenance, if so many may be drained at once.
fn forty_at_once(starts_after_s: u64, lead_s: &str, at_once: &str) -> Ran {
    let settings = [("SPILLWAY_MAINTENANCE_LEAD_S", lead_s), ("SPILLWAY_MAINTENANCE_AT_ONCE", at_once)];
    let plan = Plan::maintenance(40, Duration::from_secs(starts_after_s), &settings);
    World { seed: number("SEED").unwrap_or(0), plan }.run(true)
}

#[test]
fn of_forty_nodes_with_one_maintenance_no_more_than_the_limit_drain_at_once_and_each_before_its_time() {
    // Announced long before its lead, their begins are spread; announced so late that all begin in the same second, most give way.
    for (starts_after_s, lead_s, give_way) in [(7200, "3600", false), (3600, "7200", true)] {
        let ran = forty_at_once(starts_after_s, lead_s, "5");
        let told = format!("{}\n{}", ran.history, ran.broken.join("\n"));
        assert!(ran.broken.is_empty(), "{told}");
        assert_eq!(ran.history.contains("is postponed until"), give_way, "{told}");
    }
}

#[test]
fn a_seed_has_one_history() {
    for seed in 0..10 {
        let [first, second] = [0, 1].map(|_| World::of(seed).run(true).history);
        let differ = first.lines().zip(second.lines()).find(|(first, second)| first != second);
        assert_eq!(differ, None, "seed {seed}");
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn a_world_that_was_written_down_is_the_same() {
    for seed in 0..100 {
        let world = World::of(seed);
        let written = serde_json::to_string(&world).unwrap();
        let read: World = serde_json::from_str(&written).unwrap();
        assert_eq!(format!("{read:?}"), format!("{world:?}"));
    }
}

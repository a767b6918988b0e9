//! The machine that was measured on. What cannot be read is not known.

use std::fs;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Long enough that a tick of the clock more or less does not matter.
const LOOK: Duration = Duration::from_secs(2);

/// Twenty ticks of a processor's clock.
const GLANCE: Duration = Duration::from_millis(200);
/// A world in which nothing happens uses about half of that.
const SETTLED: f64 = 0.1;
const SETTLED_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    cores: Option<usize>,
    processor: Option<String>,
    memory_gib: Option<f64>,
    system: String,
}

impl Machine {
    pub(crate) fn look() -> Self {
        Self {
            cores: available_parallelism().ok().map(usize::from),
            processor: after(&read("/proc/cpuinfo"), "model name").map(|text| text.trim_start_matches(": ").to_owned()),
            memory_gib: after(&read("/proc/meminfo"), "MemTotal:").and_then(gib),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }

    pub(crate) fn in_words(&self) -> String {
        let cores = self.cores.map_or_else(|| "unknown cores".to_owned(), |cores| format!("{cores} cores"));
        let processor = self.processor.as_deref().unwrap_or("processor unknown");
        let memory =
            self.memory_gib.map_or_else(|| "memory unknown".to_owned(), |memory| format!("{memory:.1} GiB of memory"));
        format!("{cores} ({processor}), {memory}, {}", self.system)
    }
}

/// With more of its time used by others, a machine is not quiet.
const QUIET: f64 = 0.1;

/// Whether it was quiet: from the part of its time that others used, looked at before and after.
pub(crate) fn quiet_in_words(busy: &[f64]) -> String {
    let percent = |busy: &f64| format!("{:.0} %", busy * 100.0);
    let shares = busy.iter().map(percent).collect::<Vec<_>>().join(" and ");
    let busiest = busy.iter().copied().fold(0.0, f64::max);
    match (busy.is_empty(), busiest <= QUIET) {
        (true, _) => "how busy it was is not known".to_owned(),
        (false, true) => format!("quiet: others used {shares} of its time before and after"),
        (false, false) => {
            format!(
                "**not quiet**: others used {shares} of its time before and after; the ratios say more than the times"
            )
        }
    }
}

/// Which part of all processors' time is being used, by whomever.
pub(crate) async fn busy() -> Option<f64> {
    busy_for(LOOK).await
}

/// The waits for a machine at rest, before each drain.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Rests {
    waits: usize,
    restless: usize,
}

impl Rests {
    /// Waits until what was done before has been done with: once a node's pods run, the control plane is busy with them for
    /// a while yet, and who is measured at once pays for it; who has to be started first does not. It gives up waiting after
    /// a time.
    pub(crate) async fn wait(&mut self) {
        self.waits += 1;
        let limit = Instant::now() + SETTLED_WITHIN;
        while busy_for(GLANCE).await.is_some_and(|busy| busy > SETTLED) {
            if Instant::now() > limit {
                self.restless += 1;
                return;
            }
        }
    }

    pub(crate) fn add(&mut self, others: Self) {
        self.waits += others.waits;
        self.restless += others.restless;
    }

    pub(crate) fn in_words(self) -> String {
        let Self { waits, restless } = self;
        match restless {
            0 => "at rest before each drain".to_owned(),
            _ => {
                format!(
                    "at rest before each drain but {restless} of {waits}, waited for {} s",
                    SETTLED_WITHIN.as_secs()
                )
            }
        }
    }
}

async fn busy_for(time: Duration) -> Option<f64> {
    let before = ticks(&read("/proc/stat"))?;
    tokio::time::sleep(time).await;
    let after = ticks(&read("/proc/stat"))?;
    let (all, idle) = (after.all - before.all, after.idle - before.idle);
    (all > 0.0).then(|| 1.0 - idle / all)
}

/// The kernel's count of processor time since it started.
#[derive(Debug, PartialEq)]
struct Ticks {
    all: f64,
    idle: f64,
}

/// From `cpu  user nice system idle iowait …`.
fn ticks(stat: &str) -> Option<Ticks> {
    let counts: Vec<f64> = after(stat, "cpu ")?.split_whitespace().filter_map(|count| count.parse().ok()).collect();
    Some(Ticks { all: counts.iter().sum(), idle: counts.get(3)? + counts.get(4)? })
}

/// Nothing, where the system has no such file.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The rest of the first line that begins so.
fn after<'a>(text: &'a str, begin: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(begin)).map(str::trim)
}

/// From the kernel's `24047132 kB`.
fn gib(text: &str) -> Option<f64> {
    let kib: f64 = text.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_was_busy_once_was_not_quiet() {
        assert_eq!(quiet_in_words(&[0.02, 0.1]), "quiet: others used 2 % and 10 % of its time before and after");
        assert!(quiet_in_words(&[0.11, 0.02]).starts_with("**not quiet**"));
        assert_eq!(quiet_in_words(&[]), "how busy it was is not known");
    }

    #[test]
    fn the_kernels_files_are_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC\nprocessor\t: 1\nmodel name\t: AMD EPYC\n";
        assert_eq!(after(cpuinfo, "model name"), Some(": AMD EPYC"));
        assert_eq!(gib("1048576 kB"), Some(1.0));
        assert_eq!(ticks("cpu  10 0 20 60 5 0 5\ncpu0 1 2 3 4 5 6 7\n"), Some(Ticks { all: 100.0, idle: 65.0 }));
    }
}

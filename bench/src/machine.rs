//! The machine of a measurement: its size, and the share of its processors that others use.

use std::fs;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Long enough that one tick of the clock does not matter.
const LOOK: Duration = Duration::from_secs(2);
/// Twenty ticks of a processor's clock.
const GLANCE: Duration = Duration::from_millis(200);
/// An idle world uses about half of that.
const AT_REST: f64 = 0.1;
const AT_REST_WITHIN: Duration = Duration::from_secs(10);
/// A machine of which others use more is not quiet.
const QUIET: f64 = 0.1;

/// Cores, processor, memory and system, in words.
pub(crate) fn in_words() -> String {
    let cores = available_parallelism().map_or_else(|_| "unknown".to_owned(), |cores| cores.to_string());
    let (cpuinfo, meminfo) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let processor = after(&cpuinfo, "model name").map_or("unknown", |text| text.trim_start_matches(": "));
    let memory = after(&meminfo, "MemTotal:").and_then(gib).unwrap_or_default();
    let (system, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("{cores} cores ({processor}), {memory:.1} GiB of memory, {system} {architecture}")
}

/// Judges the noise by the shares that others used before and after.
pub(crate) fn quiet_in_words(busy: &[f64]) -> String {
    let shares = busy.iter().map(|busy| format!("{:.0} %", busy * 100.0)).collect::<Vec<_>>().join(" and ");
    let quiet = if busy.iter().copied().fold(0.0, f64::max) <= QUIET { "quiet" } else { "**not quiet**" };
    format!("{quiet}: others used {shares} of its time before and after")
}

/// Share of all processors' time that is in use.
pub(crate) async fn busy() -> Option<f64> {
    busy_for(LOOK).await
}

/// Waits for a machine at rest, before each drain.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Rests {
    waits: usize,
    restless: usize,
}

impl Rests {
    /// Waits, for a bounded time, until the control plane has finished what new nodes and pods cause.
    pub(crate) async fn wait(&mut self) {
        self.waits += 1;
        let limit = Instant::now() + AT_REST_WITHIN;
        while busy_for(GLANCE).await.is_some_and(|busy| busy > AT_REST) {
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
        let within = AT_REST_WITHIN.as_secs();
        format!("the machine was at rest before {} of {waits} drains, waited for up to {within} s", waits - restless)
    }
}

async fn busy_for(time: Duration) -> Option<f64> {
    let before = ticks(&read("/proc/stat"))?;
    tokio::time::sleep(time).await;
    let after = ticks(&read("/proc/stat"))?;
    let (all, idle) = (after.0 - before.0, after.1 - before.1);
    (all > 0.0).then(|| 1.0 - idle / all)
}

/// All ticks and idle ticks since the kernel started, from `cpu  user nice system idle iowait …`.
fn ticks(stat: &str) -> Option<(f64, f64)> {
    let counts: Vec<f64> = after(stat, "cpu ")?.split_whitespace().filter_map(|count| count.parse().ok()).collect();
    Some((counts.iter().sum(), counts.get(3)? + counts.get(4)?))
}

/// Empty where the system has no such file.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Rest of the first line with this beginning.
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
    fn machine_busy_once_is_not_quiet() {
        assert_eq!(quiet_in_words(&[0.02, 0.1]), "quiet: others used 2 % and 10 % of its time before and after");
        assert!(quiet_in_words(&[0.11, 0.02]).starts_with("**not quiet**"));
    }

    #[test]
    fn kernel_files_are_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC\nprocessor\t: 1\nmodel name\t: AMD EPYC\n";
        assert_eq!(after(cpuinfo, "model name"), Some(": AMD EPYC"));
        assert_eq!(gib("1048576 kB"), Some(1.0));
        assert_eq!(ticks("cpu  10 0 20 60 5 0 5\ncpu0 1 2 3 4 5 6 7\n"), Some((100.0, 65.0)));
    }
}

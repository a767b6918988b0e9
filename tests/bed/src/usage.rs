//! What a process has used, as the kernel counts it, and which processes belong to a folder. Linux only.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::Child;
use tokio::time::interval;

/// A tick of the kernel's counts of processor time: `USER_HZ` is 100 in Linux's interface for programs.
const TICK: Duration = Duration::from_millis(10);
/// A process that has ended tells no more what it used, so it is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What one process has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Its own, and the kernel's for it.
    pub processor_time: Duration,
    /// The most memory it has had in use at a time, in bytes.
    pub peak_memory: u64,
}

impl Usage {
    pub fn of(id: u32) -> io::Result<Self> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{id}/{file}"));
        let lacks = |what: &str| io::Error::other(format!("process {id} has no {what}"));
        let ticks = ticks(&read("stat")?).ok_or_else(|| lacks("times"))?;
        let peak_memory = peak_memory(&read("status")?).ok_or_else(|| lacks("VmHWM"))?;
        Ok(Self { processor_time: TICK * ticks, peak_memory })
    }
}

/// Waits until a process has ended, and answers what it had used when it was last looked at.
pub async fn until_ended(child: &mut Child) -> io::Result<(ExitStatus, Usage)> {
    let id = child.id().expect("nobody has waited for it yet");
    let mut look = interval(LOOK_EVERY);
    let mut usage = Usage::default();
    loop {
        tokio::select! {
            status = child.wait() => return status.map(|status| (status, usage)),
            _ = look.tick() => usage = Usage::of(id).unwrap_or(usage),
        }
    }
}

/// A process that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningProcess {
    pub id: u32,
    /// Its command line, each argument ended by a NUL.
    pub command: String,
}

/// The processes that name a folder on their command line, as all of a world but its supervisor do.
pub fn processes_naming(folder: &Path) -> io::Result<Vec<RunningProcess>> {
    let folder = folder.to_string_lossy();
    let mut naming = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that has ended meanwhile has none.
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        if command.contains(&*folder) {
            naming.push(RunningProcess { id, command });
        }
    }
    Ok(naming)
}

/// From the kernel's `VmHWM:     18944 kB`.
fn peak_memory(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// From `id (name) state parent …`: user and system time are the 14th and 15th. The name may hold
/// blanks and brackets, so it is counted from its end.
fn ticks(stat: &str) -> Option<u32> {
    let mut after_name = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    Some(after_name.next()?.parse::<u32>().ok()? + after_name.next()?.parse::<u32>().ok()?)
}

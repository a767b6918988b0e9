//! Resource usage of a process, and the processes of a folder. Linux only.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::Child;
use tokio::time::interval;

/// Unit of the kernel's processor times: `USER_HZ` is 100 in Linux's interface for programs.
const TICK: Duration = Duration::from_millis(10);
/// The usage of a process cannot be read after its end.
const READ_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system time.
    pub processor_time: Duration,
    /// Peak memory in bytes.
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

/// Waits until a process has ended; returns the last usage that could be read.
pub async fn until_ended(child: &mut Child) -> io::Result<(ExitStatus, Usage)> {
    let id = child.id().expect("the child has not been waited for");
    let mut read = interval(READ_EVERY);
    let mut usage = Usage::default();
    loop {
        tokio::select! {
            status = child.wait() => return status.map(|status| (status, usage)),
            _ = read.tick() => usage = Usage::of(id).unwrap_or(usage),
        }
    }
}

/// Command lines with a folder, as all of a world's processes have. A NUL ends each argument.
pub fn processes_naming(folder: &Path) -> io::Result<Vec<String>> {
    let folder = folder.to_string_lossy();
    let mut naming = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // Absent if the entry is no process, or the process has ended meanwhile.
        let command = fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        naming.push(String::from_utf8_lossy(&command).into_owned());
    }
    naming.retain(|command| command.contains(&*folder));
    Ok(naming)
}

/// From `VmHWM:     18944 kB`.
fn peak_memory(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// From `id (name) state parent …`: the 14th and 15th field. The name may have blanks and brackets.
fn ticks(stat: &str) -> Option<u32> {
    let mut after_name = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    Some(after_name.next()?.parse::<u32>().ok()? + after_name.next()?.parse::<u32>().ok()?)
}

//! A share of a processor, as Lambda gives a function by its memory: a quota of Linux' control groups. Their first version
//! and their second; making one takes root.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::lambda::random;

/// The memory with which Lambda gives a function a whole processor (AWS, *Configure Lambda function memory*).
pub const MB_OF_A_PROCESSOR: u32 = 1769;
/// In each a process runs for its share, then waits for the next. AWS does not say which it takes.
const PERIOD: Duration = Duration::from_millis(20);

/// Of the processes that were put into it; ends with this value, which has to outlive them.
#[derive(Debug)]
pub struct ProcessorShare {
    group: PathBuf,
}

impl ProcessorShare {
    /// What Lambda gives a function with that much memory; an error where this machine lets us make no control group.
    pub fn of_memory(mb: u32) -> io::Result<Self> {
        let quota = (PERIOD * mb / MB_OF_A_PROCESSOR).as_micros();
        let period = PERIOD.as_micros();
        let first = PathBuf::from("/sys/fs/cgroup/cpu");
        let (root, limits) = if first.is_dir() {
            (first, vec![("cpu.cfs_period_us", period.to_string()), ("cpu.cfs_quota_us", quota.to_string())])
        } else {
            ("/sys/fs/cgroup".into(), vec![("cpu.max", format!("{quota} {period}"))])
        };
        let group = root.join(format!("spillway-{:016x}", random()));
        fs::create_dir(&group)?;
        let share = Self { group };
        for (file, limit) in limits {
            fs::write(share.group.join(file), limit)?;
        }
        Ok(share)
    }

    /// Puts a process into it, with all its threads.
    pub fn limit(&self, id: u32) -> io::Result<()> {
        fs::write(self.group.join("cgroup.procs"), id.to_string())
    }
}

impl Drop for ProcessorShare {
    fn drop(&mut self) {
        // A group with a process in it cannot be taken away: its user is told of nothing that it could do about it.
        let _ = fs::remove_dir(&self.group);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// How often the kernel made a group's processes wait for the next period.
    fn throttled(share: &ProcessorShare) -> u64 {
        let stat = fs::read_to_string(share.group.join("cpu.stat")).expect("the group's counts");
        let count = stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")).expect("a count");
        count.parse().expect("a number")
    }

    #[test]
    fn a_process_that_wants_more_than_its_share_waits() {
        let Ok(share) = ProcessorShare::of_memory(MB_OF_A_PROCESSOR / 8) else {
            eprintln!("this machine lets us make no control group: nothing to see");
            return;
        };
        // Declared after the share, so that it has ended when the group goes.
        let busy = Killed(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell"));
        share.limit(busy.0.id()).expect("it joins");
        while throttled(&share) < 3 {
            std::thread::yield_now();
        }
        drop(busy);
        let group = share.group.clone();
        drop(share);
        assert!(!group.exists(), "nothing stays behind");
    }
}

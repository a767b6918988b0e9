//! What a process has used, as the kernel counts it. Linux only.

use std::fs;
use std::io;
use std::time::Duration;

/// A tick of the kernel's counts of processor time: `USER_HZ` is 100 in Linux's interface for programs.
const TICK: Duration = Duration::from_millis(10);

/// The most memory a process has had in use at a time, in bytes.
pub(crate) fn peak_memory(id: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::other(format!("process {id} has no VmHWM")))
}

/// The processor time that a process has used, its own and the kernel's for it.
pub(crate) fn processor_time(id: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    ticks(&stat)
        .map(|ticks| TICK * ticks)
        .ok_or_else(|| io::Error::other(format!("process {id} has no times in {stat:?}")))
}

/// From `id (name) state parent …`: user and system time are the 14th and 15th. The name may hold
/// blanks and brackets, so it is counted from its end.
fn ticks(stat: &str) -> Option<u32> {
    let mut after_name = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    Some(after_name.next()?.parse::<u32>().ok()? + after_name.next()?.parse::<u32>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_does_not_shift_its_times() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 17 5 0 0 20 0 1 0 100 1000 10 0";
        assert_eq!(ticks(stat), Some(22));
    }

    #[test]
    fn this_very_process_can_be_read() {
        assert!(peak_memory(std::process::id()).expect("it is in /proc") > 0);
        processor_time(std::process::id()).expect("it is in /proc");
    }
}

//! Result of a drain.

use std::collections::BTreeMap;

use spillway_notice::continued::PublishedBlockage;
use tokio::time::Instant;

use super::deadline::Window;
use super::plan::PodUid;
use super::pod::Tracked;

#[derive(Debug)]
pub struct DrainReport {
    pub pods: BTreeMap<PodUid, Tracked>,
    pub window: Window,
    /// Last published event about a blockage.
    pub blockage: Option<PublishedBlockage>,
    pub end: DrainEnd,
    /// Time since which no pod had to leave.
    pub over_at: Instant,
    /// Time at which the watch of the pods ended. After a very short drain, the watch goes on for late pods.
    pub ended_at: Instant,
    /// Error of the watch of the pods, if the watch was broken at the end.
    pub watch_error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The lifecycle hook is over, and the instance goes.
    HookIsOver,
    /// The node was uncordoned, and is in use again.
    GivenBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainEnd {
    /// Every pod that had to leave has gone.
    Empty,
    /// Every pod that had to leave has gone, or was terminating when the kubelet fell silent.
    Silent,
    /// Every pod that had to leave has gone, or has been terminating for too long on a node that answers.
    Stuck,
    /// The window ended before the drain.
    TimeUp,
    Stopped(StopReason),
}

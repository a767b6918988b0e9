//! Reports an ended drain: the final state of each pod, and the reason for the end.

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
    /// Last published event about blocked pods.
    pub blockage: Option<PublishedBlockage>,
    pub end: DrainEnd,
    /// Time at which no pod had to leave any more. Equal to `ended_at` if pods still had to leave at the end.
    pub emptied_at: Instant,
    /// Time at which the drain ended. Can be some seconds after `emptied_at`, because the scheduler may still assign pods.
    pub ended_at: Instant,
    /// Error of the pod watch, if the watch was interrupted when the drain ended.
    pub watch_error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The lifecycle hook ended before the drain did.
    HookIsOver,
    /// The node was uncordoned during the drain.
    GivenBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainEnd {
    /// Every pod that had to leave has gone.
    Empty,
    /// Every pod that had to leave has gone or is terminating. The silent kubelet does not report when pods stop.
    Silent,
    /// Every pod that had to leave has gone, except pods that are stuck in `Terminating` although the kubelet answers.
    Stuck,
    /// Time ran out while pods still had to leave.
    TimeUp,
    Stopped(StopReason),
}

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
    /// Time at which no pod had to leave any more. If pods still had to leave at the end, equal to `ended_at`.
    pub emptied_at: Instant,
    /// Time at which the drain ended. A drain may wait some seconds after `emptied_at` for pods that the scheduler still assigns.
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
    /// Every pod that had to leave has gone, except terminating pods whose end the silent kubelet does not report.
    Silent,
    /// Every pod that had to leave has gone, except pods that are stuck in `Terminating` although the kubelet answers.
    Stuck,
    /// Time ran out while pods still had to leave.
    TimeUp,
    Stopped(StopReason),
}

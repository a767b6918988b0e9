//! How a drain ended, and what became of each pod.

use std::collections::BTreeMap;

use spillway_notice::continued::PublishedBlockage;
use tokio::time::Instant;

use super::deadline::Window;
use super::plan::PodUid;
use super::pod::Tracked;

/// How a drain ended.
#[derive(Debug)]
pub struct DrainReport {
    /// Every pod that was on the node.
    pub pods: BTreeMap<PodUid, Tracked>,
    /// From when to when the node was drained.
    pub window: Window,
    /// What has been published of what blocked it.
    pub blockage: Option<PublishedBlockage>,
    /// Why it ended.
    pub end: DrainEnd,
    /// When it came to that.
    pub over_at: Instant,
    /// Until when the pods were watched: longer than that, if it came very soon.
    pub ended_at: Instant,
    /// Why the pods could not be watched at the end, if they could not.
    pub blind: Option<String>,
}

/// What ends a drain before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The lifecycle hook waits no longer, and the instance goes.
    HookIsOver,
    /// The node is in use again.
    GivenBack,
}

/// Why a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainEnd {
    /// Every pod that had to leave has gone.
    Empty,
    /// Every pod that had to leave has gone, or was shutting down when the node stopped answering.
    Silent,
    /// Every pod that had to leave has gone, or has been stuck for long on a node that answers.
    Stuck,
    /// The window ended before.
    TimeUp,
    /// Nobody wants it any more.
    Stopped(StopReason),
}

//! How a drain ended, and what became of each pod.

use std::collections::BTreeMap;

use spillway_notice::continued::PodsPutBack;
use tokio::time::Instant;

use super::plan::PodUid;
use super::pod::Tracked;

/// How a drain ended.
#[derive(Debug)]
pub(crate) struct DrainReport {
    /// Every pod that was on the node.
    pub(crate) pods: BTreeMap<PodUid, Tracked>,
    /// Those that came back, if any did.
    pub(crate) put_back: Option<PodsPutBack>,
    /// Why it ended.
    pub(crate) end: DrainEnd,
    /// When it came to that.
    pub(crate) over_at: Instant,
    /// Until when the pods were watched: longer than that, if it came very soon.
    pub(crate) ended_at: Instant,
    /// Why the pods could not be watched at the end, if they could not.
    pub(crate) blind: Option<String>,
}

/// What ends a drain before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The lifecycle hook waits no longer, and the instance goes.
    HookIsOver,
    /// The node is in use again.
    GivenBack,
}

/// Why a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrainEnd {
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

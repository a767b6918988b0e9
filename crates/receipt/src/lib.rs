//! The receipt: what became of a notice, as the drain function writes it and others read it. `docs/receipt.md` describes it.
//!
//! * `document`: the receipt, and what the log and the event bus have around it
//! * `pod`, `hook`, `times`, `earlier`: its parts
//! * `counts`: what pods come to, by their fates
//! * `length`: how one that is too long is cut
//! * `lines`: how it stands in the log
//! * `lenient`: how a newer version's is read
//! * `schema`: the comparison of a type with its schema in `docs/`, for tests
//!
//! Whoever reads may be older than who wrote, and newer. What a newer version adds is passed over, and a value that only
//! it knows is read as if it were not there: its news is better told without that than not at all. Nothing but types, and
//! what can be said of them without the drain.

mod counts;
mod document;
mod earlier;
mod hook;
mod length;
mod lenient;
mod lines;
mod pod;
#[cfg(feature = "schema")]
pub mod schema;
mod times;

pub use counts::Counts;
pub use document::{Document, Ending, NoticeRecord, Receipt};
pub use earlier::Earlier;
pub use hook::{HookRecord, HookState, LifecycleResult};
pub use lines::{LONGEST_LINE, lines};
pub use pod::{BLOCKED_BY_BUDGET, BLOCKED_BY_SEVERAL_BUDGETS, Fate, Leaving, Pod, PodRecord};
pub use times::{AfterDrain, Step, StepName, WindowRecord};

/// The version of the receipt. It changes when a field is renamed or changes its meaning.
pub const VERSION: u32 = 2;

/// The `detail-type` of the event that tells that a drain has begun.
pub const DRAIN_BEGUN: &str = "Spillway Drain Begun";
/// The `detail-type` of the event that something has blocked a drain for long.
pub const DRAIN_BLOCKED: &str = "Spillway Drain Blocked";
/// The `detail-type` of the event that it does so no longer.
pub const DRAIN_UNBLOCKED: &str = "Spillway Drain Unblocked";
/// The `detail-type` of the event that tells how a notice ended.
pub const RECEIPT: &str = "Spillway Receipt";

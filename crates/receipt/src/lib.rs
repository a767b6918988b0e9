//! Types of the receipt, in which the drain function records the handling of a notice (`docs/receipt.md`).
//!
//! * `document`: the receipt as a log line and as an event
//! * `pod`, `hook`, `times`, `earlier`: parts of the receipt
//! * `counts`: counts pods by fate
//! * `length`: shortens a receipt that is too long
//! * `lines`: writes a receipt as log lines
//! * `lenient`: reads receipts of newer versions
//! * `schema`: for tests, compares a type with its schema in `docs/`
//!
//! Spillway reads receipts of other versions: unknown fields are skipped, and unknown values are treated as absent.

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

/// Version of the receipt format, raised if a field is renamed or changes its meaning.
pub const VERSION: u32 = 2;

/// `detail-type` of the event that Spillway publishes after the first evictions of a drain.
pub const DRAIN_BEGUN: &str = "Spillway Drain Begun";
/// `detail-type` of the event about pods whose eviction is blocked.
pub const DRAIN_BLOCKED: &str = "Spillway Drain Blocked";
/// `detail-type` of the event about pods whose eviction is no longer blocked.
pub const DRAIN_UNBLOCKED: &str = "Spillway Drain Unblocked";
/// `detail-type` of the event with the complete receipt.
pub const RECEIPT: &str = "Spillway Receipt";

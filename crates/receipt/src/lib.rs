//! The receipt: the record of one notice, written by the drain function and described in `docs/receipt.md`. Types only.
//!
//! * `document`: the receipt, and the fields around it in the log and on the event bus
//! * `pod`, `hook`, `times`, `earlier`: parts of the receipt
//! * `counts`: pods counted by fate
//! * `length`: cuts a receipt that is too long
//! * `lines`: writes a receipt as log lines
//! * `lenient`: reads receipts of newer versions
//! * `schema`: compares a type with its schema in `docs/`, for tests
//!
//! Readers and writers may have different versions. A reader skips unknown fields and treats unknown values as absent.

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

/// Version of the receipt, raised when a field is renamed or changes its meaning.
pub const VERSION: u32 = 2;

/// `detail-type` of the event of a drain that has begun.
pub const DRAIN_BEGUN: &str = "Spillway Drain Begun";
/// `detail-type` of the event of a drain that has been blocked for a minute.
pub const DRAIN_BLOCKED: &str = "Spillway Drain Blocked";
/// `detail-type` of the event of a drain that is no longer blocked.
pub const DRAIN_UNBLOCKED: &str = "Spillway Drain Unblocked";
/// `detail-type` of the event with the receipt of a finished notice.
pub const RECEIPT: &str = "Spillway Receipt";

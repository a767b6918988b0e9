//! Calls AWS services without an SDK client. docs/contributing/decisions/0014 gives the reason.
//!
//! Failed calls are not retried here: see the crate `spillway-retry`.

mod caller;
mod error;
mod partition;
mod refusal;
mod service;

pub use caller::{Call, Caller, Failed};
pub use error::{CallError, CallErrorKind};
pub use partition::dns_suffix;
pub use service::Service;

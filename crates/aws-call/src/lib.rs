//! AWS calls without an SDK client: signed here and sent by the SDK's HTTP client.
//!
//! docs/contributing/decisions/0014 lists the called services and the reason. A call is one attempt: `spillway-retry` repeats
//! calls.

mod caller;
mod error;
mod partition;
mod refusal;
mod service;

pub use caller::{Call, Caller, Failed};
pub use error::{CallError, CallErrorKind};
pub use partition::dns_suffix;
pub use service::Service;

//! AWS calls without an SDK client: signed here and sent by the SDK's HTTP client.
//!
//! docs/contributing/decisions/0014 lists these services and the reason. A call is one attempt: `spillway-retry` repeats calls.
//!
//! # Layout
//! * `partition`: domain of a Region's endpoints
//! * `service`: services and their endpoints
//! * `caller`: signs a call, sends it and reads the answer
//! * `refusal`: error code and message of a refused call
//! * `error`: failures of any AWS call, classified by the remedy

mod caller;
mod error;
mod partition;
mod refusal;
mod service;

pub use caller::{Call, Caller, Failed};
pub use error::{CallError, CallErrorKind};
pub use partition::dns_suffix;
pub use service::Service;

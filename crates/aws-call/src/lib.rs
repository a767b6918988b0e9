//! Calls to AWS without a client of the SDK: signed here, and sent by the HTTP client that the SDK's clients have.
//!
//! docs/contributing/decisions/0014 says which services are called so, and why. A call is one attempt: `spillway-retry` makes several.
//!
//! # Layout
//! * `partition`: the domain of a Region's endpoints
//! * `service`: the services that are called by hand, and their endpoints
//! * `caller`: signs a call, sends it and reads the answer
//! * `refusal`: what AWS says when it refuses a call
//! * `error`: what the caller of any call to AWS can do about its failure

mod caller;
mod error;
mod partition;
mod refusal;
mod service;

pub use caller::{Call, Caller, Failed};
pub use error::{CallError, CallErrorKind};
pub use partition::dns_suffix;
pub use service::Service;

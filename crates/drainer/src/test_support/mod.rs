//! What the unit tests of several rooms begin with: what scripts of AWS and of an API server have; from `doubles` the context
//! that follows them; and from core settings, an instance, a notice, a time.

pub(crate) mod api_server;
pub(crate) mod aws;
pub(crate) mod context;
pub(crate) mod log;

pub(crate) use crate::doubles::script;
pub(crate) use spillway_core::test_support::{at, hook, instance, instance_id, notice, settings};

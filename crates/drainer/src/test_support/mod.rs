//! What the unit tests of several rooms begin with: scripts of AWS and of an API server, a context of them; and from core
//! settings, an instance, a notice, a time.

pub(crate) mod api_server;
pub(crate) mod aws;
pub(crate) mod context;
pub(crate) mod schema;
pub(crate) mod script;

pub(crate) use spillway_core::test_support::{at, hook, instance, instance_id, notice, settings, tags};

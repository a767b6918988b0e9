//! Shared parts of unit tests: scripts for AWS and the API server, contexts, settings, instances, notices.

pub(crate) mod api_server;
pub(crate) mod aws;
pub(crate) mod context;

pub(crate) use crate::doubles::script;
pub(crate) use spillway_core::test_support::{at, hook, instance, instance_id, notice, settings};

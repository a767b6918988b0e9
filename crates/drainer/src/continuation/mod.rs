//! Going on in a later invocation: what brings it back. Until when is decided in core's `continuation/limits.rs`.
//!
//! * `now`: at once, by an invocation of its own
//! * `schedule`: at a time, by a schedule that invokes it

mod now;
pub(crate) mod schedule;

pub(crate) use now::invoke_next;

//! Going on in a later invocation: what brings it back. Until when is decided in core's `continuation/limits.rs`.
//!
//! * `now`: at once, by an invocation of its own
//! * `schedule`: at a time, by a schedule that invokes it
//! * `queue`: when invocations are there for drains that can wait, by a message
//! * `turn`: an invocation that such a message has begun

mod now;
mod queue;
pub(crate) mod schedule;
mod turn;

pub(crate) use now::invoke_next;
pub(crate) use queue::put;
pub(crate) use turn::Turn;

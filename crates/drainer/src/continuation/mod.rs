//! Going on in a later invocation: until when, and what brings it back.
//!
//! * `limits`: until when a notice is worked on (pure)
//! * `now`: at once, by an invocation of its own
//! * `schedule`: at a time, by a schedule that invokes it

mod limits;
mod now;
pub(crate) mod schedule;

pub(crate) use limits::Limits;
pub(crate) use now::hand_on;

//! A tree and its values to a message.

mod evaluate;
mod fields;
mod walk;

pub(crate) use walk::render;

//! A tree and its values to a message.

mod budget;
mod evaluate;
mod fields;
mod walk;

pub(crate) use walk::render;

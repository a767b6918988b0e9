//! Renders a tree.

mod evaluate;
mod fields;
mod walk;

pub(crate) use walk::render;

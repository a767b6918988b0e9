//! Renders the syntax tree of a template.

mod evaluate;
mod fields;
mod walk;

pub(crate) use walk::render;

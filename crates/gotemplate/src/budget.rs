//! Remaining budget of a rendering.

use std::cell::Cell;

use serde_json::Value;

use crate::bounds;

/// Work and depth of one rendering.
#[derive(Debug)]
pub(crate) struct Budget {
    work: Cell<usize>,
    depth: Cell<usize>,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { work: Cell::new(bounds::WORK), depth: Cell::new(0) }
    }

    /// Charges work in bytes, before it is done.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), String> {
        let left = self.work.get().checked_sub(bytes);
        self.work.set(left.ok_or("this template takes too much work, and was stopped here")?);
        Ok(())
    }

    /// Charges a value that is read or made, and returns its approximate size.
    pub(crate) fn charge_value(&self, value: &Value) -> Result<usize, String> {
        let weight = bounds::weigh(value)?;
        self.charge(weight)?;
        Ok(weight)
    }

    /// Enters a block, a pipeline or a template.
    pub(crate) fn deeper(&self) -> Result<(), String> {
        self.depth.set(self.depth.get() + 1);
        if self.depth.get() > bounds::DEPTH {
            return Err(format!("more than {} levels of blocks and templates", bounds::DEPTH));
        }
        Ok(())
    }

    /// Leaves what [`Budget::deeper`] entered.
    pub(crate) fn shallower(&self) {
        self.depth.set(self.depth.get() - 1);
    }
}

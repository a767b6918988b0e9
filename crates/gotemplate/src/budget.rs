//! Budget of one rendering.

use std::cell::Cell;

use serde_json::Value;

use crate::bounds;

/// Remaining work of one rendering in bytes, and the current depth of blocks and templates.
#[derive(Debug)]
pub(crate) struct Budget {
    work: Cell<usize>,
    depth: Cell<usize>,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { work: Cell::new(bounds::WORK), depth: Cell::new(0) }
    }

    /// Subtracts work in bytes from the budget, before the work is done. Fails if the budget has less left.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), String> {
        let left = self.work.get().checked_sub(bytes);
        self.work.set(left.ok_or("this template takes too much work, and was stopped here")?);
        Ok(())
    }

    /// Subtracts the approximate size of a value that is read or made, and returns the size.
    pub(crate) fn charge_value(&self, value: &Value) -> Result<usize, String> {
        let weight = bounds::weigh(value)?;
        self.charge(weight)?;
        Ok(weight)
    }

    /// Enters a block, a pipeline or a template. Fails above the maximum depth.
    pub(crate) fn deeper(&self) -> Result<(), String> {
        self.depth.set(self.depth.get() + 1);
        if self.depth.get() > bounds::DEPTH {
            return Err(format!("more than {} levels of blocks and templates", bounds::DEPTH));
        }
        Ok(())
    }

    /// Leaves the block, pipeline or template that [`Budget::deeper`] entered.
    pub(crate) fn shallower(&self) {
        self.depth.set(self.depth.get() - 1);
    }
}

//! Stops a rendering that does too much work or nests too deeply.

use std::cell::Cell;

use serde_json::Value;

use crate::bounds;

/// Budget of one rendering: the remaining bytes, and the current nesting depth.
#[derive(Debug)]
pub(crate) struct Budget {
    work: Cell<usize>,
    depth: Cell<usize>,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { work: Cell::new(bounds::WORK), depth: Cell::new(0) }
    }

    /// Subtracts a cost from the budget. Fails if the cost exceeds the remaining budget.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), String> {
        let left = self.work.get().checked_sub(bytes);
        self.work.set(left.ok_or("this template takes too much work, and was stopped here")?);
        Ok(())
    }

    /// Subtracts the approximate size of a value from the budget, and returns the size in bytes.
    pub(crate) fn charge_value(&self, value: &Value) -> Result<usize, String> {
        let weight = bounds::size_of_value(value)?;
        self.charge(weight)?;
        Ok(weight)
    }

    /// Adds one level for a block, pipeline or template. Fails above [`bounds::DEPTH`].
    pub(crate) fn deeper(&self) -> Result<(), String> {
        self.depth.set(self.depth.get() + 1);
        if self.depth.get() > bounds::DEPTH {
            return Err(format!("more than {} levels of blocks and templates", bounds::DEPTH));
        }
        Ok(())
    }

    /// Removes the level that [`Budget::deeper`] added.
    pub(crate) fn shallower(&self) {
        self.depth.set(self.depth.get() - 1);
    }
}

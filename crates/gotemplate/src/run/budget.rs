//! What a rendering has left of what it may use.

use serde_json::Value;

use crate::bounds;
use crate::fault::Fault;

pub(super) struct Budget {
    work: usize,
    depth: usize,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { work: bounds::WORK, depth: 0 }
    }

    /// Takes so many bytes' work.
    pub(super) fn spend(&mut self, bytes: usize, at: usize) -> Result<(), Fault> {
        match self.work.checked_sub(bytes) {
            Some(left) => self.work = left,
            None => return Err(Fault::new(at, "this template takes too much work, and was stopped here")),
        }
        Ok(())
    }

    /// Takes the work of reading or making a value.
    pub(super) fn spend_on(&mut self, value: &Value, at: usize) -> Result<usize, Fault> {
        let weight = bounds::weigh(value).map_err(|message| Fault::new(at, message))?;
        self.spend(weight, at)?;
        Ok(weight)
    }

    pub(super) fn deeper(&mut self, at: usize) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > bounds::DEPTH {
            return Err(Fault::new(at, format!("more than {} levels of blocks and templates", bounds::DEPTH)));
        }
        Ok(())
    }

    pub(super) fn shallower(&mut self) {
        self.depth -= 1;
    }
}

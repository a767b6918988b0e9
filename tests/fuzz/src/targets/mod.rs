//! The targets, by their names.

mod continuations;
mod notices;
mod receipts;
mod templates;
mod webhooks;

use crate::Target;

/// Every target.
pub static TARGETS: [Target; 5] =
    [continuations::TARGET, notices::TARGET, receipts::TARGET, templates::TARGET, webhooks::TARGET];

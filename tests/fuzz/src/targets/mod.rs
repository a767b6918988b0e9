//! The targets, by their names.

mod continuations;
mod health;
mod notices;
mod receipts;
mod selectors;
mod settings;
mod templates;
mod webhooks;

use crate::Target;

/// Every target.
pub static TARGETS: [Target; 8] = [
    continuations::TARGET,
    health::TARGET,
    notices::TARGET,
    receipts::TARGET,
    selectors::TARGET,
    settings::TARGET,
    templates::TARGET,
    webhooks::TARGET,
];

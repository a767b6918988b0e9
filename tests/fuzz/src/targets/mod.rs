//! Fuzz targets by name.

mod notices;
mod receipts;
mod templates;
mod webhooks;

use crate::Target;

pub static TARGETS: [Target; 4] = [notices::TARGET, receipts::TARGET, templates::TARGET, webhooks::TARGET];

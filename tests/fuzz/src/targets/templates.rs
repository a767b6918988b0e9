//! Go templates: errors have a place, and memory is bounded.

use std::sync::LazyLock;

use gotemplate_json::Template;
use peak_alloc::PeakAlloc;
use serde_json::Value;

use crate::{Target, seeds};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Same bound as in `crates/gotemplate/tests/memory.rs`.
const MOST_MEMORY: usize = 64 << 20;
/// Bound of a message in the library's README.
const LONGEST: usize = 1 << 20;

static DATA: LazyLock<Value> = LazyLock::new(|| seeds::recorded().0);

pub(super) const TARGET: Target = Target {
    name: "templates",
    seeds: || seeds::recorded().1,
    examine: |input| {
        let Ok(text) = str::from_utf8(input) else { return };
        let data = &*DATA;
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let rendered = match Template::parse(text) {
            Ok(template) => template.render(data).map_err(|error| (error.line, error.column, error.message)),
            Err(error) => Err((error.line, error.column, error.message)),
        };
        let taken = ALLOCATOR.peak_usage().saturating_sub(before);
        assert!(taken <= MOST_MEMORY, "{taken} bytes of memory");
        match rendered {
            Ok(message) => assert!(message.len() <= LONGEST, "a message of {} bytes", message.len()),
            Err((line, column, why)) => {
                assert!(is_place(text, line, column) && !why.is_empty(), "{line}:{column}: {why}");
            }
        }
    },
};

/// Returns `true` if a text has this line and column; a column may be one after the end.
fn is_place(text: &str, line: usize, column: usize) -> bool {
    let Some(found) = text.split('\n').nth(line.wrapping_sub(1)) else { return false };
    (1..=found.chars().count() + 1).contains(&column)
}

//! Go templates: one that is refused is told with its place, and whatever one says, it takes no more memory than a message may.

use std::sync::LazyLock;

use gotemplate_json::Template;
use peak_alloc::PeakAlloc;
use serde_json::Value;

use crate::{Form, Target, seeds};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Nothing that a template says takes more memory, says `crates/gotemplate/tests/memory.rs`.
const MOST_MEMORY: usize = 64 << 20;
/// No message is longer, says the library's page.
const LONGEST: usize = 1 << 20;

static DATA: LazyLock<Value> = LazyLock::new(|| seeds::recorded().0);

pub(super) const TARGET: Target = Target {
    name: "templates",
    form: Form::Text,
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
        assert!(taken <= MOST_MEMORY, "it took {taken} bytes");
        match rendered {
            Ok(message) => assert!(message.len() <= LONGEST, "a message of {} bytes", message.len()),
            Err((line, column, why)) => {
                assert!(is_place(text, line, column) && !why.is_empty(), "{line}:{column}: {why}");
            }
        }
    },
};

/// Whether a text has such a line, with such a column or an end right before it.
fn is_place(text: &str, line: usize, column: usize) -> bool {
    let Some(found) = text.split('\n').nth(line.wrapping_sub(1)) else { return false };
    (1..=found.chars().count() + 1).contains(&column)
}

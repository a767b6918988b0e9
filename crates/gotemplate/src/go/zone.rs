//! Loads time zones by name from the files of the operating system.

use std::path::Path;

use jiff::tz::TimeZone;

/// Directory of the time zone files.
const FILES: &str = "/usr/share/zoneinfo";

/// Returns a time zone by name, such as `Europe/Berlin`. `Local` is UTC.
pub(crate) fn named(name: &str) -> Result<TimeZone, String> {
    if matches!(name, "UTC" | "Local" | "") {
        return Ok(TimeZone::UTC);
    }
    let unknown = || format!("the time zone {} is not known here", super::shown(name));
    // A name must not lead to other files.
    let is_name = name.split('/').all(|part| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'))
    });
    // `jiff` can read these files only with a feature that would apply to the whole build.
    let file = is_name.then(|| std::fs::read(Path::new(FILES).join(name)).ok()).flatten().ok_or_else(unknown)?;
    TimeZone::tzif(name, &file).map_err(|_| unknown())
}

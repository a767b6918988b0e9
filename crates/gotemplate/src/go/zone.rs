//! Time zones by name, from the system's files, as in Go.

use std::path::Path;

use jiff::tz::TimeZone;

/// Folder of the system's time zones. `jiff`'s feature `tzdb-zoneinfo` is not used, because it would apply to the whole build.
const FILES: &str = "/usr/share/zoneinfo";

/// Returns a zone by its name, such as `Europe/Berlin`. `Local` is UTC.
pub(crate) fn named(name: &str) -> Result<TimeZone, String> {
    if matches!(name, "UTC" | "Local" | "") {
        return Ok(TimeZone::UTC);
    }
    let unknown = || format!("the time zone {} is not known here", super::shown(name));
    // A name must not lead to other files.
    let is_name = name.split('/').all(|part| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'))
    });
    let file = is_name.then(|| std::fs::read(Path::new(FILES).join(name)).ok()).flatten().ok_or_else(unknown)?;
    TimeZone::tzif(name, &file).map_err(|_| unknown())
}

//! Time zones by name, from the system's own files, as Go finds them.

use std::path::Path;

use jiff::tz::TimeZone;

/// The library would look here too, by a feature that whatever else is built with it would get as well.
const FILES: &str = "/usr/share/zoneinfo";

/// A zone by its name, such as `Europe/Berlin`. `Local` is UTC, as it is where nobody has set another.
pub(crate) fn named(name: &str) -> Result<TimeZone, String> {
    if matches!(name, "UTC" | "Local" | "") {
        return Ok(TimeZone::UTC);
    }
    let unknown = || format!("the time zone {} is not known here", super::shown(name));
    // A name is a name, and no way to other files.
    let is_name = name.split('/').all(|part| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'))
    });
    let file = is_name.then(|| std::fs::read(Path::new(FILES).join(name)).ok()).flatten().ok_or_else(unknown)?;
    TimeZone::tzif(name, &file).map_err(|_| unknown())
}

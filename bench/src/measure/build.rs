//! Which build of the product was measured.

use std::path::Path;

/// Without the machine's own folders.
pub(crate) fn in_words(binary: &Path) -> String {
    let parts: Vec<_> = binary.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let has = |name: &str| parts.iter().any(|part| part == name);
    if has(".aws-sam") {
        "the release build that `sam build` makes".to_owned()
    } else if has("release") || has("lambda") {
        "a release build".to_owned()
    } else if has("debug") {
        "a **dev build**, which is not what is deployed".to_owned()
    } else {
        let name = binary.file_name().unwrap_or_default().to_string_lossy();
        format!("`{name}`, as `SPILLWAY_DRAIN` named it")
    }
}

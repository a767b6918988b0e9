//! What a measurement prints and keeps: its raw results, and the page that is rendered from them.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use spillway_bed::BedError;

use super::own_file;

/// Raw results of which there is a page.
pub(crate) trait Report: Serialize + DeserializeOwned {
    /// What both files are called in `docs/measured/`, without `.json` and `.md`.
    const FILE: &'static str;

    fn page(&self) -> String;
}

/// `docs/measured/` of this repository.
pub(crate) fn documents() -> PathBuf {
    own_file("../docs/measured")
}

/// Keeps raw results in a folder, if one is named, and the page beside them; answers the page. It is rendered from what
/// was written, so that nothing is on it that is not there.
pub(crate) fn keep<R: Report>(results: &R, folder: Option<&Path>) -> Result<String, BedError> {
    let raw = raw(results).map_err(io::Error::other).map_err(BedError::io("write the raw results"))?;
    let page = rendered::<R>(&raw)?;
    if let Some(folder) = folder {
        for (ending, text) in [("json", &raw), ("md", &page)] {
            let path = folder.join(R::FILE).with_extension(ending);
            std::fs::write(&path, text).map_err(BedError::io(format!("write {}", path.display())))?;
        }
    }
    Ok(page)
}

/// The page of raw results.
pub(crate) fn rendered<R: Report>(raw: &str) -> Result<String, BedError> {
    let results: R =
        serde_json::from_str(raw).map_err(io::Error::other).map_err(BedError::io("read the raw results"))?;
    Ok(results.page())
}

/// JSON, one drain a line.
fn raw(results: &impl Serialize) -> serde_json::Result<String> {
    let results = serde_json::to_value(results)?;
    let fields = results.as_object().into_iter().flatten();
    let lines = |items: &Vec<Value>| items.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
    let fields = fields.map(|(name, value)| match value {
        Value::Array(items) if items.iter().any(Value::is_object) => format!("{}: [\n{}\n]", json!(name), lines(items)),
        other => format!("{}: {other}", json!(name)),
    });
    Ok(format!("{{\n{}\n}}\n", fields.collect::<Vec<_>>().join(",\n")))
}

/// Writes the page once more, if its raw results are there.
pub(crate) fn render<R: Report>() -> Result<(), BedError> {
    let path = documents().join(R::FILE);
    let Ok(raw) = std::fs::read_to_string(path.with_extension("json")) else { return Ok(()) };
    let page = path.with_extension("md");
    std::fs::write(&page, rendered::<R>(&raw)?).map_err(BedError::io(format!("write {}", page.display())))
}

/// Prints what came, or why nothing did. A requirement that is missed is no error: it is a result.
pub(crate) fn tell(came: Result<impl Display, BedError>) -> ExitCode {
    match came {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot measure: {}", error.story());
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_results_have_a_drain_a_line() {
        let results = json!({"runs": [{"a": 1}, {"a": 2}], "busy": [0.1, 0.2], "kubectl": "v1"});
        let raw = raw(&results).expect("JSON");
        assert_eq!(raw.lines().count(), 8, "{raw}");
        assert_eq!(serde_json::from_str::<Value>(&raw).expect("JSON"), results);
    }
}

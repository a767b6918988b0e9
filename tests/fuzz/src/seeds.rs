//! Valid input: samples of events, JSON of pages, recorded templates.

use std::path::{Path, PathBuf};

use serde_json::Value;

fn path(within: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(within)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads the files of a folder, by name.
fn files(folder: &str) -> Vec<String> {
    let folder = path(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a listed file").path()).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

pub(crate) fn events() -> Vec<String> {
    files("events")
}

pub(crate) fn events_as_values() -> Vec<Value> {
    events().iter().map(|event| serde_json::from_str(event).expect("valid JSON")).collect()
}

/// JSON blocks of a page.
pub(crate) fn shown_by(page: &str) -> Vec<String> {
    let text = read(&path(page));
    text.split("```json\n").skip(1).filter_map(|block| block.split("```").next()).map(str::to_owned).collect()
}

/// Data and templates of the recordings of Go's text/template.
pub(crate) fn recorded() -> (Value, Vec<String>) {
    let parse = |text: &String| serde_json::from_str::<Value>(text).expect("valid JSON");
    let recordings: Vec<Value> = files("crates/gotemplate/tests/recorded").iter().map(parse).collect();
    let data = recordings.iter().find(|recording| recording.is_object()).expect("the data of the recordings");
    let cases = recordings.iter().filter_map(Value::as_array).flatten();
    (data.clone(), cases.filter_map(|case| Some(case["template"].as_str()?.to_owned())).collect())
}

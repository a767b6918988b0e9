//! Recorded output of Go's text/template with sprig (Go 1.26, sprig 3.3), compared with ours.
//!
//! `tests/record` writes the recordings. There, `data.json` is a struct, lists of strings are `[]string`, and fields with a
//! name in `…Time` are a `time.Time`.

use std::path::Path;

use gotemplate_json::Template;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[derive(Deserialize)]
struct Case {
    template: String,
    #[serde(flatten)]
    go: Go,
}

/// Result of Go.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Go {
    Output(String),
    ParseError(String),
    RenderError(String),
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(name).with_extension("json");
    let text = std::fs::read_to_string(file).expect("the recording exists");
    serde_json::from_str(&text).expect("the recording is valid")
}

/// Compares a case. Errors of Go's rendering may be errors of our parser.
fn difference(case: &Case, data: &Value) -> Option<String> {
    let ours = match Template::parse(&case.template) {
        Ok(template) => template.render(data).map_err(|error| ("render", error.to_string())),
        Err(error) => Err(("parse", error.to_string())),
    };
    let same = match (&case.go, &ours) {
        (Go::Output(expected), Ok(output)) => expected == output,
        (Go::ParseError(_), Err((phase, _))) => *phase == "parse",
        (Go::RenderError(_), Err(_)) => true,
        _ => false,
    };
    let (Go::Output(go) | Go::ParseError(go) | Go::RenderError(go)) = &case.go;
    (!same).then(|| format!("{:?}\n    Go:   {go:?}\n    ours: {ours:?}", case.template))
}

#[test]
fn recorded_templates_render_as_in_go() {
    let data: Value = read("data");
    for topic in ["messages", "syntax", "printing", "printf", "comparing", "strings", "collections", "json", "times"] {
        let cases: Vec<Case> = read(topic);
        let differences: Vec<String> = cases.iter().filter_map(|case| difference(case, &data)).collect();
        assert!(
            differences.is_empty(),
            "{topic}: {} of {}:\n{}",
            differences.len(),
            cases.len(),
            differences.join("\n")
        );
    }
}

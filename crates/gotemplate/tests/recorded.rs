//! Recorded output of Go's text/template with sprig (Go 1.26, sprig 3.3), compared with ours.
//! `tests/record` wrote the recordings: the data's fields were a struct's there, lists of strings `[]string`, and
//! `…Time` a `time.Time`.

use std::path::Path;

use gotemplate_json::Template;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Recording {
    data: Value,
    cases: Vec<Case>,
}

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

fn check(topic: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(topic).with_extension("json");
    let recording: Recording = serde_json::from_str(&std::fs::read_to_string(file).expect("the recording is there"))
        .expect("it is a recording");
    assert!(!recording.cases.is_empty());
    let differences: Vec<String> =
        recording.cases.iter().filter_map(|case| difference(case, &recording.data)).collect();
    let count = differences.len();
    assert!(differences.is_empty(), "{count} of {}:\n{}", recording.cases.len(), differences.join("\n"));
}

/// Compares a case. Errors that Go finds while rendering may be found while parsing.
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

macro_rules! recorded {
    ($($name:ident: $topic:literal,)*) => {
        $(#[test]
        fn $name() {
            check($topic);
        })*
    };
}

recorded! {
    templates_of_messages_as_people_write_them: "messages",
    the_syntax_is_gos: "syntax",
    values_print_as_in_go: "printing",
    printf_is_gos: "printf",
    comparisons_are_gos: "comparing",
    strings_are_treated_as_by_sprig: "strings",
    lists_maps_numbers_and_defaults_are_treated_as_by_sprig: "collections",
    json_is_what_go_writes: "json",
    times_are_written_by_gos_layouts: "times",
}

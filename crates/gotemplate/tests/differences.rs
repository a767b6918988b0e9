//! Intended differences from Go and sprig, listed in the README. `errors.json` has those that are errors.

use gotemplate_json::Template;
use serde_json::json;

fn renders(template: &str, expected: &str) {
    let data = json!({
        "Text": "grüße 🚀",
        "Pods": ["b", "a"],
        "NodeLabels": {"team": "shop", "app": "cart"},
        "StartTime": "2026-11-21T03:12:44.5+01:00",
    });
    let rendered = Template::parse(template).expect("a template").render(&data);
    assert_eq!(rendered.as_deref(), Ok(expected), "{template}");
}

#[test]
fn characters_are_never_cut() {
    renders("{{ trunc 3 .Text }}", "gr");
    renders("{{ trunc -3 .Text }}", "");
    renders("{{ abbrev 6 .Text }}", "gr...");
    renders("{{ substr 3 8 .Text }}{{ substr 3 3 .Text }}", "ße ");
    renders("{{ slice .Text 0 11 }}", "grüße ");
}

#[test]
fn map_functions_take_maps_of_strings() {
    renders(r#"{{ get .NodeLabels "team" }}{{ hasKey .NodeLabels "none" }}"#, "shopfalse");
    renders(r#"{{ dig "team" "none" .NodeLabels }}{{ pick .NodeLabels "team" }}"#, "shopmap[team:shop]");
}

#[test]
fn keys_and_values_are_sorted_by_key() {
    renders("{{ keys .NodeLabels }}{{ values .NodeLabels }}", "[app team][cart shop]");
}

#[test]
fn sort_alpha_returns_a_new_list() {
    renders("{{ sortAlpha .Pods }}{{ .Pods }}", "[a b][b a]");
}

#[test]
fn rfc_3339_text_is_a_time_and_prints_unchanged() {
    renders(
        r#"{{ .StartTime.UTC }} {{ .StartTime | date "15:04:05.0" }}"#,
        "2026-11-21 02:12:44.5 +0000 UTC 02:12:44.5",
    );
    renders("{{ .StartTime }} {{ toJson .StartTime }}", r#"2026-11-21T03:12:44.5+01:00 "2026-11-21T03:12:44.5+01:00""#);
}

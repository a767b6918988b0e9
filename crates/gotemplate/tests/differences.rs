//! Intended differences from Go and sprig, listed in the README.

use gotemplate_json::Template;
use serde_json::json;

fn rendered(template: &str) -> Result<String, String> {
    let data = json!({
        "Text": "grüße 🚀",
        "Pods": ["b", "a"],
        "NodeLabels": {"team": "shop", "app": "cart"},
        "StartTime": "2026-11-21T03:12:44.5+01:00",
    });
    let template = Template::parse(template).map_err(|error| format!("parse: {error}"))?;
    template.render(&data).map_err(|error| format!("render: {error}"))
}

fn renders(template: &str, expected: &str) {
    assert_eq!(rendered(template).as_deref(), Ok(expected), "{template}");
}

/// Asserts the phase in which a template fails.
fn fails(phase: &str, template: &str) {
    let error = rendered(template).expect_err(template);
    assert!(error.starts_with(phase), "{template}: {error}");
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
fn unreachable_code_is_checked() {
    fails("parse", r#"{{ if false }}{{ template "none" }}{{ end }}"#);
    fails("parse", "{{ if false }}{{ .Text | 5 }}{{ end }}");
    fails("parse", "{{ if false }}{{ $x = 1 }}{{ end }}");
    fails("parse", "{{ if false }}{{ nil }}{{ end }}");
}

#[test]
fn environment_and_network_are_unavailable() {
    fails("parse", r#"{{ env "AWS_SECRET_ACCESS_KEY" }}"#);
    fails("parse", r#"{{ expandenv "$AWS_SECRET_ACCESS_KEY" }}"#);
    fails("parse", r#"{{ getHostByName "example.com" }}"#);
}

#[test]
fn invalid_time_is_an_error() {
    fails("render", r#"{{ date "2006" .Text }}"#);
    fails("render", r#"{{ dateModify "soon" .StartTime }}"#);
    fails("render", r#"{{ dateInZone "15:04" .StartTime "Nowhere" }}"#);
}

#[test]
fn rfc_3339_text_is_a_time_and_prints_unchanged() {
    renders(
        r#"{{ .StartTime.UTC }} {{ .StartTime | date "15:04:05.0" }}"#,
        "2026-11-21 02:12:44.5 +0000 UTC 02:12:44.5",
    );
    renders("{{ .StartTime }} {{ toJson .StartTime }}", r#"2026-11-21T03:12:44.5+01:00 "2026-11-21T03:12:44.5+01:00""#);
}

#[test]
fn integer_overflow_is_an_error() {
    fails("render", "{{ add 9223372036854775807 1 }}");
    fails("render", "{{ div -9223372036854775808 -1 }}");
}

#[test]
fn invalid_regular_expression_is_an_error() {
    fails("render", r#"{{ regexMatch "(" .Text }}"#);
}

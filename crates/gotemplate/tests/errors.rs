//! Error messages for invalid templates.

use gotemplate_json::Template;
use serde_json::json;

/// Each template, and what is said of it.
fn said(templates: &[&str]) -> String {
    let data = json!({"NodeName": "ip-10-0-1-23", "Kind": "SPOT_ITN", "Pods": ["cart-0"], "NodeLabels": {"team": "shop"}, "Time": "x"});
    let lines = templates.iter().map(|source| {
        let answer = match Template::parse(source) {
            Err(error) => error.to_string(),
            Ok(template) => match template.render(&data) {
                Err(error) => format!("while rendering: {error}"),
                Ok(output) => format!("renders as {output:?}"),
            },
        };
        format!("{source}\n    {answer}\n")
    });
    lines.collect()
}

#[test]
fn what_does_not_parse_is_named_with_its_place() {
    let said = said(&[
        "{\n  \"text\": \"{{ .NodeName }\"\n}",
        "{\"text\":\"{{ .NodeName\"}",
        "{{ if .Pods }}\n{{ .Pods }}",
        "{{ if .Pods }}{{ else }}\n  {{ range .Pods }}{{ . }}\n{{ end }}",
        "a\nb {{ end }}",
        "{{ else }}",
        "{{ if .Pods }}a{{ else }}b{{ else }}c{{ end }}",
        "{{ if }}a{{ end }}",
        "{{ .NodeName | toUpper }}",
        "{{ env \"HOME\" }}",
        "{{ $pod }}",
        "{{ $pod = 5 }}",
        "{{ template \"header\" . }}",
        "{{ define \"a\" }}x{{ end }}{{ define \"a\" }}y{{ end }}",
        "{{ printf \"%s }}",
        "{{ $a, $b := .Pods }}",
        "{{ range $a, $b, $c := .Pods }}{{ end }}",
        "{{ define \"a\"",
        "{{ template }}",
        "{{ with $x := }}",
        "{{ contains \"a\" }}",
        "{{ replace \"a\" }}",
        "{{ round 1.5 }}",
        "{{ if true }}{{ break }}{{ end }}",
        "{{ (len .Pods }}",
        "{{ len .Pods) }}",
        "{{ \\\"text\\\" }}",
        "{{ “text” }}",
        "grüße {{ 5x }}",
        "{{ break }}",
        "{{ .NodeName .Kind }}",
        "{{ .NodeName | \"x\" }}",
        "{{ /* comment */ }}",
        "{{/* comment",
        "{{ .Node-Name }}",
        "{{ .Pods[0] }}",
        "{{ .NodeName + 1 }}",
        "{{ if .Kind == \"SPOT_ITN\" }}x{{ end }}",
        "{{ range $i $pod := .Pods }}{{ end }}",
        "{{ with .Pods }}{{ else if .Kind }}{{ end }}",
        "{{ \"\\d\" }}",
        "{{ }}",
        "{{ nil }}",
    ]);
    insta::assert_snapshot!(said);
}

#[test]
fn what_cannot_be_rendered_is_named_with_its_place() {
    let said = said(&[
        "{{ .NodName }}",
        "a\n  {{ upper .Pods }}",
        "{{ .NodeLabels.team.name }}",
        "{{ index .Pods 3 }}",
        "{{ index .Kind \"a\" }}",
        "{{ eq .Kind 5 }}",
        "{{ lt .Pods 5 }}",
        "{{ range .Kind }}x{{ end }}",
        "{{ trunc \"5\" .Kind }}",
        "{{ upper }}",
        "{{ ternary 1 2 }}",
        "{{ fail \"no team\" }}",
        "{{ div 1 0 }}",
        "{{ date \"15:04\" .Time }}",
        "{{ dateInZone \"15:04\" 5 \"Nowhere/Land\" }}",
        "{{ dateInZone \"15:04\" 5 \"../zoneinfo/Europe/Berlin\" }}",
        "{{ regexMatch \"[\" .Kind }}",
        "{{ .Kind.Format \"15:04\" }}",
        "{{ .Pods.Format \"15:04\" }}",
        "{{ .NodeLabels.missing | upper }}",
        "{{ substr 5 2 .Kind }}",
        "{{ b64dec \"%\" }}",
        "{{ mul 9223372036854775807 2 }}",
        "{{ upper 1.5 }}",
        "{{ index .Pods 1 }}",
        "{{ index .Pods 1.5 }}",
        "{{ .Kind.Format 5 }}",
        "{{ .NodeLabels.team 5 }}",
        "{{ .NodeLabels.missing 5 }}",
        "{{ $when := now }}{{ $when.Format 5 }}",
    ]);
    insta::assert_snapshot!(said);
}

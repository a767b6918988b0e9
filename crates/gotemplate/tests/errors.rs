//! Error messages for invalid templates: `errors.json` has the template, the phase and the message.

use gotemplate_json::Template;
use serde_json::json;

#[test]
fn invalid_templates_are_refused_with_their_place() {
    let data = json!({"NodeName": "ip-10-0-1-23", "Kind": "SPOT_ITN", "Pods": ["cart-0"], "NodeLabels": {"team": "shop"}, "Time": "x"});
    let cases: Vec<(String, String)> = serde_json::from_str(include_str!("errors.json")).expect("a list of cases");
    for (source, expected) in cases {
        let error = match Template::parse(&source) {
            Err(error) => format!("parse: {error}"),
            Ok(template) => format!("render: {}", template.render(&data).expect_err(&source)),
        };
        assert_eq!(error, expected, "{source}");
    }
}

//! The settings: what is accepted, what is refused without telling a secret, and that the documents agree.

use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    Settings::from_variables(variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())))
}

#[test]
fn without_variables_the_defaults_hold_and_there_is_no_sink() {
    insta::assert_debug_snapshot!(read(&[("PATH", "/bin"), ("SPILLWAY_TOPIC_ARN", "")]).expect("settings"));
}

#[test]
fn every_setting_can_be_set() {
    let settings = read(&[
        ("SPILLWAY_QUEUE_ARN", "arn:aws:sqs:eu-central-1:123456789012:messages"),
        ("SPILLWAY_WEBHOOK", "/spillway/webhook"),
        ("SPILLWAY_TOPIC_ARN", "arn:aws:sns:eu-central-1:123456789012:drains"),
        ("SPILLWAY_TOPIC_FORMAT", "amazon-q"),
        ("SPILLWAY_RECEIPT_BUCKET", "receipts-of-us"),
    ])
    .expect("settings");
    insta::assert_debug_snapshot!(settings);
}

#[test]
fn the_webhooks_document_is_kept_in_parameter_store_or_in_secrets_manager() {
    let kept = |value| read(&[("SPILLWAY_WEBHOOK", value)]).map(|settings| settings.webhook.expect("a webhook"));
    assert_eq!(kept("/spillway/webhook"), Ok(StoredName::Parameter("/spillway/webhook".to_owned())));
    let arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:spillway/webhook-AbCdEf".to_owned();
    assert_eq!(kept(&arn), Ok(StoredName::Secret { arn: arn.clone(), region: "eu-west-1".to_owned() }));
    for wrong in ["webhook", "/", "arn:aws:s3:::bucket", "arn:aws:secretsmanager:eu-west-1:123456789012:"] {
        assert!(kept(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn all_problems_are_told_at_once_and_no_secret_with_them() {
    let error = read(&[
        ("SPILLWAY_WEBHOOK", "https://hooks.example/hush"),
        ("SPILLWAY_TOPIC_ARN", "arn:aws:sns:eu-central-1:123456789012:drains.fifo"),
        ("SPILLWAY_TOPIC_FORMAT", "html"),
        ("SPILLWAY_RECEIPT_BUCKET", "My Bucket"),
    ])
    .expect_err("problems")
    .to_string();
    assert!(!error.contains("hush"), "{error}");
    insta::assert_snapshot!(error.replace("; ", ";\n"));
}

#[test]
fn the_function_starts_with_a_variable_of_another_version() {
    let settings = read(&[("SPILLWAY_WEBHOOK_URL", "https://hooks.example/hush")]).expect("it is only warned of");
    assert!(settings.webhook.is_none());
}

/// A file of the repository.
fn file(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).expect("a file of the repository")
}

#[test]
fn the_page_of_settings_has_a_row_for_each_with_its_default_and_what_it_takes() {
    let page = file("docs/settings.md");
    for row in table::SETTINGS.map(|setting| setting.row()) {
        assert!(page.contains(&row), "docs/settings.md lacks this row:\n{row}");
    }
}

#[test]
fn the_template_sets_each_setting_by_a_parameter_with_the_same_default() {
    let template = file("template.yaml");
    let function = template.split("\n  Announcer:\n").nth(1).expect("the function");
    let variables =
        function.split("Variables:").nth(1).and_then(|rest| rest.split("Events:").next()).expect("variables");
    let set: Vec<_> = variables.lines().filter_map(|line| line.trim().split_once(": !Ref ")).collect();
    let expected = table::SETTINGS.map(|setting| (setting.name, setting.parameter()));
    assert_eq!(set, expected.each_ref().map(|(name, parameter)| (*name, parameter.as_str())));
    for setting in table::SETTINGS {
        let parameter = setting.parameter();
        let definition = template.split(&format!("\n  {parameter}:\n")).nth(1).expect("a parameter");
        let default = definition.split("Default: ").nth(1).and_then(|rest| rest.lines().next()).expect("a default");
        assert_eq!(default.trim_matches('"'), setting.default, "{parameter}");
    }
}

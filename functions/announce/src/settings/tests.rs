//! Tests of the settings, and of their agreement with the pages and the template.

use super::*;
use crate::samples::LOG_GROUP;

fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    Settings::from_variables(variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())))
}

#[test]
fn settings_are_read_and_have_defaults() {
    let settings = read(&[
        ("SPILLWAY_QUEUE_ARN", "arn:aws:sqs:eu-central-1:123456789012:messages"),
        ("SPILLWAY_LOG_GROUP", LOG_GROUP),
        ("SPILLWAY_WEBHOOK", "/spillway/webhook"),
        ("SPILLWAY_TOPIC_ARN", "arn:aws:sns:eu-central-1:123456789012:drains"),
    ])
    .expect("settings");
    assert_eq!((settings.queue_arn.rsplit(':').next(), settings.log_group.as_str()), (Some("messages"), LOG_GROUP));
    let topic = settings.topic.expect("a topic");
    assert_eq!((topic.arn.rsplit(':').next(), topic.region.as_str()), (Some("drains"), "eu-central-1"));
    let defaults = read(&[("PATH", "/bin"), ("SPILLWAY_TOPIC_ARN", "")]).expect("settings");
    assert!(defaults.webhook.is_none() && defaults.topic.is_none() && defaults.log_group.is_empty());
}

#[test]
fn webhook_is_the_name_of_a_parameter_or_the_arn_of_a_secret() {
    let kept = |value| read(&[("SPILLWAY_WEBHOOK", value)]).map(|settings| settings.webhook.expect("a webhook"));
    assert_eq!(kept("/spillway/webhook"), Ok(StoredName::Parameter("/spillway/webhook".to_owned())));
    let arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:spillway/webhook-AbCdEf".to_owned();
    assert_eq!(kept(&arn), Ok(StoredName::Secret { arn: arn.clone(), region: "eu-west-1".to_owned() }));
    for wrong in ["webhook", "/", "arn:aws:s3:::bucket", "arn:aws:secretsmanager:eu-west-1:123456789012:"] {
        assert!(kept(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn all_problems_are_reported_at_once_without_secrets() {
    let error = read(&[
        ("SPILLWAY_WEBHOOK", "https://hooks.example/hush"),
        ("SPILLWAY_TOPIC_ARN", "arn:aws:sns:eu-central-1:123456789012:drains.fifo"),
    ])
    .expect_err("problems")
    .to_string();
    assert!(!error.contains("hush"), "{error}");
    assert!(error.starts_with("Webhook is neither ") && error.contains("; TopicArn is \"arn:"), "{error}");
}

fn file(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).expect("a file of the repository")
}

#[test]
fn settings_page_has_the_row_of_each_setting() {
    let page = file("docs/settings.md");
    for row in table::SETTINGS.map(|setting| setting.row()) {
        assert!(page.contains(&row), "docs/settings.md lacks this row:\n{row}");
    }
}

#[test]
fn template_has_a_parameter_for_each_setting() {
    let template = file("template.yaml");
    let function = template.split("\n  Announcer:\n").nth(1).expect("the function");
    let variables =
        function.split("Variables:").nth(1).and_then(|rest| rest.split("Events:").next()).expect("variables");
    let set: Vec<_> = variables.lines().filter_map(|line| line.trim().split_once(": !Ref ")).collect();
    let parameters = table::SETTINGS.map(|setting| (setting.name, setting.parameter()));
    let log_group = [("SPILLWAY_LOG_GROUP", "DrainLogs")];
    let expected = parameters.iter().map(|(name, parameter)| (*name, parameter.as_str())).chain(log_group);
    assert_eq!(set, expected.collect::<Vec<_>>());
    for setting in table::SETTINGS {
        let parameter = setting.parameter();
        let definition = template.split(&format!("\n  {parameter}:\n")).nth(1).expect("a parameter");
        let default = definition.split("Default: ").nth(1).and_then(|rest| rest.lines().next()).expect("a default");
        assert_eq!(default.trim_matches('"'), setting.default, "{parameter}");
    }
}

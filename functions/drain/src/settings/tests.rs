//! The settings: what is accepted, what is refused, and that the documents and the template agree.

use spillway_startup::settings::{PREFIX, Setting};

use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    Settings::from_variables(variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())))
}

#[test]
fn without_variables_the_defaults_hold() {
    let settings = read(&[("PATH", "/bin"), ("SPILLWAY_SPOT", "")]).unwrap();
    insta::assert_debug_snapshot!(settings);
}

#[test]
fn every_setting_can_be_set() {
    let settings = read(&[
        ("SPILLWAY_SPOT", "ignore"),
        ("SPILLWAY_CAPACITY", "cordon"),
        ("SPILLWAY_MAINTENANCE", "ignore"),
        ("SPILLWAY_STATE_CHANGE", "ignore"),
        ("SPILLWAY_REBALANCE", "drain"),
        ("SPILLWAY_TERMINATE", "cordon"),
        ("SPILLWAY_LAUNCH", "complete"),
        ("SPILLWAY_MANAGED_NODE_GROUPS", "leave"),
        ("SPILLWAY_KARPENTER", "nodeclaim"),
        ("SPILLWAY_CLUSTERS", "prod, stage"),
        ("SPILLWAY_MANAGED_TAG", "team=shop"),
        ("SPILLWAY_NODE_SELECTOR", "tier in (web),!legacy"),
        ("SPILLWAY_HOOKS", "drain"),
        ("SPILLWAY_STRANDED_HOOKS", "CONTINUE"),
        ("SPILLWAY_HOOK_MAX_WAIT_S", "60"),
        ("SPILLWAY_HEARTBEAT_S", "20"),
        ("SPILLWAY_UNDRAINED_RESULT", "ABANDON"),
        ("SPILLWAY_UNREADY_RESULT", "CONTINUE"),
        ("SPILLWAY_REBALANCE_WINDOW_S", "30"),
        ("SPILLWAY_REBALANCE_UNDO_S", "60"),
        ("SPILLWAY_MAINTENANCE_LEAD_S", "172800"),
        ("SPILLWAY_HELD_PODS", "delete"),
        ("SPILLWAY_MARGIN_S", "5"),
        ("SPILLWAY_TAINT", "nth"),
        ("SPILLWAY_TAINT_EFFECT", "NoExecute"),
        ("SPILLWAY_EXCLUDE_FROM_LOAD_BALANCERS", "true"),
        ("SPILLWAY_OUT_OF_SERVICE_TAINT", "true"),
        ("SPILLWAY_NODE_EVENTS", "nth"),
        ("SPILLWAY_DRY_RUN", "true"),
        ("SPILLWAY_ANNOUNCE", "end"),
        ("SPILLWAY_METRICS_NAMESPACE", "Team/Nodes"),
        (
            "SPILLWAY_SCHEDULES",
            "spillway arn:aws:iam::123456789012:role/spillway-schedules arn:aws:sqs:us-east-1:123456789012:failures",
        ),
    ])
    .unwrap();
    insta::assert_debug_snapshot!(settings);
}

#[test]
fn all_problems_are_told_at_once_with_name_value_and_what_is_accepted() {
    let error = read(&[
        ("SPILLWAY_SPOT", "Drain"),
        ("SPILLWAY_HOOK_MAX_WAIT_S", "172801"),
        ("SPILLWAY_HEARTBEAT_S", "0"),
        ("SPILLWAY_HELD_PODS", "drop"),
        ("SPILLWAY_MARGIN_S", "-1"),
        ("SPILLWAY_METRICS_NAMESPACE", "AWS/Lambda"),
        ("SPILLWAY_TREMINATE", "drain"),
    ])
    .unwrap_err();
    insta::assert_snapshot!(error.to_string().replace("; ", ";\n"), @r#"
    SPILLWAY_TREMINATE is no setting: docs/settings.md has all that there are;
    SPILLWAY_SPOT is "Drain";
    it takes drain, cordon or ignore;
    SPILLWAY_HOOK_MAX_WAIT_S is "172801";
    it takes a whole number of seconds from 60 to 172800 (48 hours, Auto Scaling's own limit);
    SPILLWAY_HEARTBEAT_S is "0";
    it takes half (of the hook's own timeout) or a whole number of seconds from 5 to 3600;
    SPILLWAY_HELD_PODS is "drop";
    it takes keep or delete;
    SPILLWAY_MARGIN_S is "-1";
    it takes a whole number of seconds from 0 to 600;
    SPILLWAY_METRICS_NAMESPACE is "AWS/Lambda";
    it takes 1 to 255 letters, digits and . - _ / # :, not beginning with a colon or AWS/
    "#);
}

#[test]
fn settings_that_contradict_each_other_are_told_together_and_both_are_named() {
    let error = read(&[
        ("SPILLWAY_SPOT", "drian"),
        ("SPILLWAY_HOOK_MAX_WAIT_S", "60"),
        ("SPILLWAY_HEARTBEAT_S", "60"),
        ("SPILLWAY_HELD_PODS", "delete"),
        ("SPILLWAY_MARGIN_S", "120"),
    ])
    .unwrap_err();
    insta::assert_snapshot!(error.to_string().replace("; ", ";\n"), @r#"
    SPILLWAY_SPOT is "drian";
    it takes drain, cordon or ignore;
    SPILLWAY_HEARTBEAT_S is 60 and SPILLWAY_HOOK_MAX_WAIT_S is 60: no hook is held long enough for a heartbeat;
    SPILLWAY_MARGIN_S is 120 and SPILLWAY_CAPACITY is drain: nothing of such a notice's 120 s would be left for the drain;
    SPILLWAY_MARGIN_S is 120 and SPILLWAY_HOOK_MAX_WAIT_S is 60: nothing of a hook's wait would be left for the drain
    "#);
    let why = "nothing of such a notice's 120 s would be left for the drain";
    let spot = format!("SPILLWAY_MARGIN_S is 120 and SPILLWAY_SPOT is drain: {why}");
    let capacity = format!("SPILLWAY_MARGIN_S is 120 and SPILLWAY_CAPACITY is drain: {why}");
    let margin = ("SPILLWAY_MARGIN_S", "120");
    assert_eq!(read(&[margin]).unwrap_err().to_string(), format!("{spot}; {capacity}"));
    assert_eq!(read(&[margin, ("SPILLWAY_SPOT", "ignore")]).unwrap_err().to_string(), capacity);
    let window = ("SPILLWAY_REBALANCE_WINDOW_S", "60");
    let deleting =
        [("SPILLWAY_MARGIN_S", "60"), ("SPILLWAY_REBALANCE", "drain"), ("SPILLWAY_HELD_PODS", "delete"), window];
    assert_eq!(
        read(&deleting).unwrap_err().to_string(),
        "SPILLWAY_MARGIN_S is 60 and SPILLWAY_REBALANCE_WINDOW_S is 60: nothing of that window would be left for the drain"
    );
    let keeping = [deleting[0], deleting[1], window];
    read(&keeping).unwrap();
    read(&[margin, ("SPILLWAY_SPOT", "ignore"), ("SPILLWAY_CAPACITY", "cordon")]).unwrap();
    for good in [
        [("SPILLWAY_MARGIN_S", "119"), ("SPILLWAY_SPOT", "drain")],
        [("SPILLWAY_HEARTBEAT_S", "59"), ("SPILLWAY_HOOK_MAX_WAIT_S", "60")],
        [("SPILLWAY_HEARTBEAT_S", "half"), ("SPILLWAY_HOOK_MAX_WAIT_S", "60")],
    ] {
        read(&good).unwrap();
    }
}

/// A file of the repository.
fn file(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Every word of a text that looks like a setting, in order.
fn named_in(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
    words.filter(|word| word.len() > PREFIX.len() && word.starts_with(PREFIX)).collect()
}

#[test]
fn the_page_of_settings_has_a_row_for_each_with_its_default_and_what_it_takes() {
    let table = SETTINGS.map(|setting| setting.row()).concat();
    assert!(file("docs/settings.md").contains(&table), "docs/settings.md has other rows than these:\n{table}");
}

#[test]
fn the_template_sets_each_setting_by_a_parameter_with_the_same_default() {
    let template = file("template.yaml");
    let variables = template.split("Variables:").nth(1).unwrap().split("Events:").next().unwrap();
    let mut set: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
    set.extend([table::STACK.name, table::SCHEDULES.name]);
    assert_eq!(named_in(variables), set);
    for setting in SETTINGS {
        let Setting { name, default, .. } = setting;
        let parameter = variables.split(&format!("{name}: !Ref ")).nth(1).unwrap().lines().next().unwrap();
        let definition = template.split(&format!("\n  {parameter}:\n")).nth(1).unwrap();
        let given = definition.split("Default: ").nth(1).unwrap().lines().next().unwrap();
        assert_eq!(given.trim_matches('"'), default, "{parameter}");
        assert_eq!(parameter, setting.parameter());
    }
}

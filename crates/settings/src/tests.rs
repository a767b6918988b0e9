//! The settings: what is accepted, what is refused, and that the documents and the template agree.

use super::environment::{PREFIX, Setting};

use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let settings = Settings::from_variables(variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    match settings.wrong {
        Some(wrong) => Err(wrong),
        None => Ok(settings),
    }
}

#[test]
fn without_variables_the_defaults_hold() {
    let settings = read(&[("PATH", "/bin"), ("SPILLWAY_HOOKS", "")]).unwrap();
    insta::assert_debug_snapshot!(settings);
}

#[test]
fn every_setting_can_be_set() {
    let settings = read(&[
        ("SPILLWAY_DRAIN_ON", "rebalance,spot"),
        ("SPILLWAY_CORDON_ON", "terminate"),
        ("SPILLWAY_LAUNCH", "CONTINUE"),
        ("SPILLWAY_MANAGED_NODE_GROUPS", "off"),
        ("SPILLWAY_KARPENTER", "nodeclaim"),
        ("SPILLWAY_CLUSTERS", "prod, stage"),
        ("SPILLWAY_MANAGED_TAG", "team=shop"),
        ("SPILLWAY_NODE_SELECTOR", "tier in (web),!legacy"),
        ("SPILLWAY_HOOKS", "drain"),
        ("SPILLWAY_HOOK_GROUP_TAG", "k8s.io/cluster-autoscaler/prod=owned"),
        ("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE"),
        ("SPILLWAY_HOOK_MAX_WAIT_S", "60"),
        ("SPILLWAY_MAINTENANCE_LEAD_S", "172800"),
        ("SPILLWAY_TAINTS", "out-of-service,nth"),
        ("SPILLWAY_LOAD_BALANCERS", "wait"),
        ("SPILLWAY_NODE_EVENTS", "true"),
        ("SPILLWAY_DRY_RUN", "true"),
        (
            "SPILLWAY_SCHEDULES",
            "spillway arn:aws:iam::123456789012:role/spillway-schedules arn:aws:sqs:us-east-1:123456789012:failures",
        ),
        ("SPILLWAY_ANNOUNCEMENTS", "https://sqs.us-east-1.amazonaws.com/123456789012/announcements"),
    ])
    .unwrap();
    insta::assert_debug_snapshot!(settings);
}

#[test]
fn off_is_the_default_of_what_it_switches() {
    let off = ["CORDON_ON", "LAUNCH", "KARPENTER", "HOOKS_WITHOUT_NODE", "LOAD_BALANCERS", "TAINTS"];
    for name in off.map(|name| format!("{PREFIX}{name}")) {
        assert_eq!(read(&[(&name, "off")]).unwrap(), read(&[]).unwrap(), "{name}");
        for wrong in ["ignore", "leave", "none"] {
            assert!(read(&[(&name, wrong)]).is_err(), "{name}={wrong}");
        }
    }
}

#[test]
fn all_problems_are_told_at_once_with_name_value_and_what_is_accepted() {
    let error = read(&[
        ("SPILLWAY_DRAIN_ON", "spot,sport"),
        ("SPILLWAY_HOOK_MAX_WAIT_S", "172801"),
        ("SPILLWAY_TAINTS", "nth,spillway"),
        ("SPILLWAY_LAUNCH", "complete"),
    ])
    .unwrap_err();
    insta::assert_snapshot!(error.to_string().replace("; it", ";\nit"));
}

#[test]
fn repeated_notice_counts_once() {
    let settings = read(&[("SPILLWAY_DRAIN_ON", "spot,terminate, spot")]).unwrap();
    assert_eq!(settings.drain_on, [NoticeFamily::Spot, NoticeFamily::Terminate]);
}

#[test]
fn a_list_takes_each_word_once_and_no_empty_one() {
    for (variable, wrong) in [
        ("SPILLWAY_DRAIN_ON", "spot,"),
        ("SPILLWAY_CORDON_ON", "Spot"),
        ("SPILLWAY_CORDON_ON", "spot capacity"),
        ("SPILLWAY_TAINTS", "nth,"),
        ("SPILLWAY_TAINTS", "out-of-service,out-of-service"),
        ("SPILLWAY_HOOKS", "spillway,"),
    ] {
        assert!(read(&[(variable, wrong)]).is_err(), "{variable}={wrong}");
    }
}

#[test]
fn a_groups_tag_has_a_key_and_a_value_that_iam_takes_as_they_are() {
    for wrong in ["team", "team=", "=shop", "a=b=c", "team=*", "te am=shop", "team=\"shop\"", "team=${aws:username}"] {
        assert!(read(&[("SPILLWAY_HOOK_GROUP_TAG", wrong)]).is_err(), "{wrong}");
    }
}

#[test]
fn a_notice_that_is_to_drain_and_to_cordon_is_refused_and_both_settings_are_named() {
    let both = [("SPILLWAY_DRAIN_ON", "spot,rebalance"), ("SPILLWAY_CORDON_ON", "rebalance")];
    assert_eq!(
        read(&both).unwrap_err().to_string(),
        "DrainOn is spot,rebalance and CordonOn is rebalance: rebalance can be in one of them only"
    );
    read(&[both[0], ("SPILLWAY_CORDON_ON", "terminate")]).unwrap();
}

#[test]
fn a_notice_is_ignored_that_no_list_names() {
    let settings = read(&[("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "spot")]).unwrap();
    assert_eq!(settings.policy(NoticeFamily::Spot), Policy::Cordon);
    assert_eq!(settings.policy(NoticeFamily::Terminate), Policy::Ignore);
    assert_eq!(read(&[]).unwrap().policy(NoticeFamily::Terminate), Policy::Drain);
}

#[test]
fn a_tag_without_a_value_allows_any_and_is_written_as_it_was_chosen() {
    for (chosen, allows_shop, allows_web) in [("team", true, true), ("team=shop", true, false), ("team=", false, false)]
    {
        let tag = read(&[("SPILLWAY_MANAGED_TAG", chosen)]).unwrap().managed_tag.unwrap();
        assert_eq!((tag.allows("shop"), tag.allows("web")), (allows_shop, allows_web), "{chosen}");
        assert_eq!(tag.to_string(), chosen);
    }
}

#[test]
fn the_claims_taint_has_one_owners_name() {
    for (chosen, of_claim) in [("spillway", TaintNames::Spillway), ("nth", TaintNames::Nth)] {
        assert_eq!(read(&[("SPILLWAY_TAINTS", chosen)]).unwrap().taints.of_claim, Some(of_claim));
    }
}

#[test]
fn names_are_as_long_as_aws_takes_them_and_of_its_characters() {
    for (variable, longest) in [("SPILLWAY_CLUSTERS", 100), ("SPILLWAY_HOOKS", 255)] {
        assert!(read(&[(variable, &"a".repeat(longest))]).is_ok(), "{variable}");
        for wrong in ["a".repeat(longest + 1), "a b".to_owned(), "é".to_owned()] {
            assert!(read(&[(variable, &wrong)]).is_err(), "{variable}={wrong}");
        }
    }
    assert_eq!(read(&[("SPILLWAY_STACK", "spillway-2")]).unwrap().stack, "spillway-2");
    for wrong in ["spillway_2", "spill way"] {
        assert!(read(&[("SPILLWAY_STACK", wrong)]).is_err(), "{wrong}");
    }
}

#[test]
fn where_schedules_are_kept_is_told_whole_or_not_at_all() {
    assert!(read(&[("SPILLWAY_SCHEDULES", "spillway arn:role arn:queue")]).unwrap().schedules.is_some());
    for wrong in [" arn:role arn:queue", "spillway role arn:queue", "spillway arn:role queue", "spillway arn:role"] {
        assert!(read(&[("SPILLWAY_SCHEDULES", wrong)]).is_err(), "{wrong}");
    }
}

#[test]
fn the_queue_for_messages_is_named_by_its_url() {
    let named = |url| read(&[("SPILLWAY_ANNOUNCEMENTS", url)]).map(|settings| settings.announcements);
    assert_eq!(named("").unwrap(), None);
    assert_eq!(named("https://sqs/1/messages").unwrap().as_deref(), Some("https://sqs/1/messages"));
    assert!(named("arn:aws:sqs:us-east-1:123456789012:messages").is_err());
}

/// Lambda changes code and variables in two steps, so that for a moment one of them is another version's.
#[test]
fn the_function_starts_with_the_variables_of_another_version() {
    let newer = read(&[("SPILLWAY_DRY_RUN", "true"), ("SPILLWAY_FROM_A_LATER_VERSION", "yes")]).unwrap();
    assert_eq!(newer.unknown, ["SPILLWAY_FROM_A_LATER_VERSION"]);
    let older = read(&[("SPILLWAY_SPOT", "ignore"), ("SPILLWAY_MARGIN_S", "5")]).unwrap();
    assert_eq!(older.unknown, ["SPILLWAY_SPOT", "SPILLWAY_MARGIN_S"]);
    assert_eq!(Settings { unknown: Vec::new(), ..older }, read(&[]).unwrap(), "what is missing has its default");
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
    let page = file("docs/settings.md");
    for row in SETTINGS.map(|setting| setting.row()) {
        assert!(page.contains(&row), "docs/settings.md lacks this row:\n{row}");
    }
    let rows = page.lines().filter(|line| line.contains(&format!("| `{PREFIX}")));
    let of_announcer = ["Webhook", "TopicArn"];
    let ours = rows.filter(|row| !of_announcer.iter().any(|name| row.starts_with(&format!("| `{name}`"))));
    assert_eq!(ours.count(), SETTINGS.len(), "docs/settings.md has rows of settings that there are not");
}

#[test]
fn the_template_sets_each_setting_by_a_parameter_with_the_same_default() {
    let template = file("template.yaml");
    let variables = template.split("Variables:").nth(1).unwrap().split("Events:").next().unwrap();
    let mut set: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
    set.extend([table::STACK.name, table::SCHEDULES.name, table::ANNOUNCEMENTS.name]);
    assert_eq!(named_in(variables), set);
    for setting in SETTINGS {
        let Setting { name, default, .. } = setting;
        let value = variables.split(&format!("{name}: ")).nth(1).unwrap().lines().next().unwrap();
        let parameter = value.trim_end_matches(']').rsplit("!Ref ").next().unwrap();
        let definition = template.split(&format!("\n  {parameter}:\n")).nth(1).unwrap();
        let given = definition.split("Default: ").nth(1).unwrap().lines().next().unwrap();
        assert_eq!(given.trim_matches('"'), default, "{parameter}");
        assert_eq!(parameter, setting.parameter());
    }
}

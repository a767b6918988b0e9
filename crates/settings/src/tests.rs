//! Tests: accepted and refused values, and agreement with the documents and the template.

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
fn unset_or_empty_variable_has_its_default() {
    let settings = read(&[("PATH", "/bin"), ("SPILLWAY_HOOKS", "")]).unwrap();
    assert_eq!((settings.hooks.join(","), settings.hook_max_wait.as_secs()), ("spillway".to_owned(), 3600));
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
        ("SPILLWAY_REPLACE", "spot,maintenance"),
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
    let text = str::to_owned;
    let expected = Settings {
        drain_on: vec![NoticeFamily::Rebalance, NoticeFamily::Spot],
        cordon_on: vec![NoticeFamily::Terminate],
        launch: Some(LifecycleResult::Continue),
        managed_node_groups: ManagedNodeGroups::Leave,
        karpenter: KarpenterNodes::NodeClaim,
        clusters: vec![text("prod"), text("stage")],
        managed_tag: Some(ManagedTag { key: text("team"), value: Some(text("shop")) }),
        node_selector: selector::parse("tier in (web),!legacy").unwrap(),
        hooks: vec![text("drain")],
        hook_group_tag: Some(GroupTag { key: text("k8s.io/cluster-autoscaler/prod"), value: text("owned") }),
        hooks_without_node: Some(LifecycleResult::Continue),
        hook_max_wait: Duration::from_mins(1),
        maintenance_lead: Duration::from_hours(48),
        replace: Replace { spot: true, maintenance: true },
        taints: Taints { of_claim: Some(TaintNames::Nth), out_of_service: true },
        load_balancers: LoadBalancers::Wait,
        node_events: true,
        dry_run: true,
        schedules: Some(Schedules {
            group: text("spillway"),
            role_arn: text("arn:aws:iam::123456789012:role/spillway-schedules"),
            failures_arn: text("arn:aws:sqs:us-east-1:123456789012:failures"),
        }),
        stack: String::new(),
        announcements: Some(text("https://sqs.us-east-1.amazonaws.com/123456789012/announcements")),
        wrong: None,
        unknown: Vec::new(),
    };
    assert_eq!(settings, expected);
}

#[test]
fn off_is_the_default_of_its_settings() {
    let off = ["CORDON_ON", "LAUNCH", "KARPENTER", "HOOKS_WITHOUT_NODE", "LOAD_BALANCERS", "TAINTS", "REPLACE"];
    for name in off.map(|name| format!("{PREFIX}{name}")) {
        assert_eq!(read(&[(&name, "off")]).unwrap(), read(&[]).unwrap(), "{name}");
        for wrong in ["ignore", "leave", "none"] {
            assert!(read(&[(&name, wrong)]).is_err(), "{name}={wrong}");
        }
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let error = read(&[
        ("SPILLWAY_DRAIN_ON", "spot,sport"),
        ("SPILLWAY_HOOK_MAX_WAIT_S", "172801"),
        ("SPILLWAY_TAINTS", "nth,spillway"),
        ("SPILLWAY_LAUNCH", "complete"),
    ])
    .unwrap_err();
    let error = error.to_string();
    for problem in ["DrainOn is \"spot,sport\"; it", "Launch is", "HookMaxWaitS is", "Taints is"] {
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn malformed_values_are_refused() {
    let names =
        |longest: usize| [format!("spillway-{}", "a".repeat(longest)), "a b".to_owned(), "é".to_owned()].join("|");
    for (variable, wrong) in [
        ("DRAIN_ON", "spot,"),
        ("CORDON_ON", "Spot|spot capacity"),
        ("TAINTS", "nth,|out-of-service,out-of-service"),
        ("HOOKS", "spillway,"),
        // IAM interprets no character of the tag.
        ("HOOK_GROUP_TAG", "team|team=|=shop|a=b=c|team=*|te am=shop|team=\"shop\"|team=${aws:username}"),
        ("CLUSTERS", names(92).as_str()),
        ("HOOKS", names(247).as_str()),
        ("STACK", "spillway_2|spill way"),
        ("SCHEDULES", " arn:role arn:queue|spillway role arn:queue|spillway arn:role queue|spillway arn:role"),
        ("ANNOUNCEMENTS", "arn:aws:sqs:us-east-1:123456789012:messages"),
    ] {
        for wrong in wrong.split('|') {
            assert!(read(&[(&format!("{PREFIX}{variable}"), wrong)]).is_err(), "{variable}={wrong}");
        }
    }
    for (variable, longest) in [("SPILLWAY_CLUSTERS", 100), ("SPILLWAY_HOOKS", 255)] {
        assert!(read(&[(variable, &"a".repeat(longest))]).is_ok(), "{variable}");
    }
    assert_eq!(read(&[("SPILLWAY_STACK", "spillway-2")]).unwrap().stack, "spillway-2");
}

#[test]
fn notice_in_both_lists_is_refused() {
    let both = [("SPILLWAY_DRAIN_ON", "spot,rebalance"), ("SPILLWAY_CORDON_ON", "rebalance")];
    assert_eq!(
        read(&both).unwrap_err().to_string(),
        "DrainOn is spot,rebalance and CordonOn is rebalance: rebalance can be in one of them only"
    );
    let repeated = read(&[("SPILLWAY_DRAIN_ON", "spot,rebalance, spot"), ("SPILLWAY_CORDON_ON", "terminate")]).unwrap();
    assert_eq!(repeated.drain_on, [NoticeFamily::Spot, NoticeFamily::Rebalance]);
}

#[test]
fn notice_in_no_list_is_ignored() {
    let settings = read(&[("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "spot")]).unwrap();
    assert_eq!(settings.policy(NoticeFamily::Spot), Policy::Cordon);
    assert_eq!(settings.policy(NoticeFamily::Terminate), Policy::Ignore);
    assert_eq!(read(&[]).unwrap().policy(NoticeFamily::Terminate), Policy::Drain);
}

#[test]
fn managed_tag_without_a_value_allows_any_value() {
    for (chosen, allows_shop, allows_web) in [("team", true, true), ("team=shop", true, false), ("team=", false, false)]
    {
        let tag = read(&[("SPILLWAY_MANAGED_TAG", chosen)]).unwrap().managed_tag.unwrap();
        assert_eq!((tag.allows("shop"), tag.allows("web")), (allows_shop, allows_web), "{chosen}");
        assert_eq!(tag.to_string(), chosen);
    }
}

/// Lambda changes code and variables in two steps, so for a moment one of them is another version's.
#[test]
fn variables_of_another_version_are_accepted() {
    let newer = read(&[("SPILLWAY_DRY_RUN", "true"), ("SPILLWAY_FROM_A_LATER_VERSION", "yes")]).unwrap();
    assert_eq!(newer.unknown, ["SPILLWAY_FROM_A_LATER_VERSION"]);
    let older = read(&[("SPILLWAY_SPOT", "ignore"), ("SPILLWAY_MARGIN_S", "5")]).unwrap();
    assert_eq!(older.unknown, ["SPILLWAY_SPOT", "SPILLWAY_MARGIN_S"]);
    assert_eq!(Settings { unknown: Vec::new(), ..older }, read(&[]).unwrap(), "missing variables have their defaults");
}

/// Contents of a file of the repository.
fn file(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Names of settings in a text, in order.
fn named_in(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
    words.filter(|word| word.len() > PREFIX.len() && word.starts_with(PREFIX)).collect()
}

#[test]
fn documented_rows_match_the_settings() {
    let page = file("docs/settings.md");
    for row in SETTINGS.map(|setting| setting.row()) {
        assert!(page.contains(&row), "docs/settings.md lacks this row:\n{row}");
    }
    let rows = page.lines().filter(|line| line.contains(&format!("| `{PREFIX}")));
    let of_announcer = ["Webhook", "TopicArn"];
    let ours = rows.filter(|row| !of_announcer.iter().any(|name| row.starts_with(&format!("| `{name}`"))));
    assert_eq!(ours.count(), SETTINGS.len(), "docs/settings.md has rows of unknown settings");
}

#[test]
fn template_has_a_parameter_with_each_default() {
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

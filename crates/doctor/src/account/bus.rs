//! The default event bus: the rules that hear our notices or lead to us, and where they lead.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::{Rule as ListedRule, RuleState, Target};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use spillway_drainer::aws::{self, CallError};
use spillway_notice::event_patterns::{EVENT_PATTERNS, EventPattern};
use tokio::time::Instant;

use super::pattern::Pattern;
use crate::asked_until;

const LIST: &str = "events:ListRules";
const BY_TARGET: &str = "events:ListRuleNamesByTarget";
const TARGETS: &str = "events:ListTargetsByRule";
/// A bus has 300 rules unless its quota was raised, and a page holds 100: no account's bus keeps the doctor for long.
const MOST_PAGES: usize = 20;
/// EventBridge takes some tens of calls a second from all of an account.
const AT_ONCE: usize = 4;

/// A rule that gets one of our notices, or leads to the function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) state: State,
    /// A schedule has none.
    pub(super) pattern: Option<Pattern>,
    pub(super) targets: Vec<RuleTarget>,
}

/// Whether a rule works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Enabled,
    Disabled,
}

/// Where a rule leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleTarget {
    /// Its name within the rule.
    pub(super) id: String,
    pub(super) arn: String,
    /// What it hands over in place of the event, as far as it can be told.
    pub(super) input: Option<String>,
}

impl Rule {
    /// Whether it invokes that function.
    pub(super) fn leads_to(&self, function: &str) -> bool {
        self.targets.iter().any(|target| target.arn == function)
    }

    /// Whether such an event passes, or may pass.
    pub(super) fn lets_through(&self, event: &EventPattern) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| pattern.lets_through(event))
    }
}

/// The rules that hear our notices or lead to the function, whoever made them. Tried until `end`.
pub(super) async fn rules(client: &Client, function: &str, end: Instant) -> Result<Vec<Rule>, CallError> {
    let leading = aws::until(BY_TARGET, asked_until(end), || leading_to(client, function)).await?;
    let mut listed = Vec::new();
    let mut token = None;
    for _ in 0..MOST_PAGES {
        let page = aws::until(LIST, asked_until(end), async || {
            let page = client.list_rules().limit(100).set_next_token(token.clone()).send().await;
            page.map_err(|error| CallError::new(LIST, error))
        });
        let page = page.await?;
        listed.extend(page.rules.unwrap_or_default());
        token = page.next_token;
        if token.is_none() {
            break;
        }
    }
    let of_ours = listed.into_iter().filter_map(|rule| looked_at(rule, &leading));
    let with_targets = stream::iter(of_ours).map(|rule| async move {
        let targets = aws::until(TARGETS, asked_until(end), || targets(client, &rule.name)).await?;
        Ok::<_, CallError>(Rule { targets, ..rule })
    });
    with_targets.buffered(AT_ONCE).try_collect().await
}

/// The names of the rules that lead to the function: 100 at most are on one page, and more would be one of ours each.
async fn leading_to(client: &Client, function: &str) -> Result<Vec<String>, CallError> {
    let listed = client.list_rule_names_by_target().target_arn(function).send().await;
    Ok(listed.map_err(|error| CallError::new(BY_TARGET, error))?.rule_names.unwrap_or_default())
}

/// The rule without its targets, if it gets anything of ours or leads to us. Those that AWS manages for a service of its own
/// drain nothing.
fn looked_at(rule: ListedRule, leading: &[String]) -> Option<Rule> {
    let pattern = rule.event_pattern.as_deref().and_then(Pattern::parse);
    let state = if rule.state == Some(RuleState::Disabled) { State::Disabled } else { State::Enabled };
    let found = Rule { name: rule.name?, state, pattern, targets: Vec::new() };
    let is_looked_at = leading.contains(&found.name) || EVENT_PATTERNS.iter().any(|event| found.lets_through(event));
    (rule.managed_by.is_none() && is_looked_at).then_some(found)
}

/// A rule has five targets at most: they are on one page.
async fn targets(client: &Client, rule: &str) -> Result<Vec<RuleTarget>, CallError> {
    let listed = client.list_targets_by_rule().rule(rule).send().await;
    let listed = listed.map_err(|error| CallError::new(TARGETS, error))?;
    Ok(listed.targets.unwrap_or_default().into_iter().map(of_rule).collect())
}

fn of_rule(target: Target) -> RuleTarget {
    let transformer = target.input_transformer.map(|transformer| transformer.input_template);
    let input = target.input.or(target.input_path).or(transformer);
    RuleTarget { id: target.id, arn: target.arn, input }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use spillway_drainer::doubles::script::call;
    use spillway_drainer::doubles::scripted::TestContext;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rules_are_read_from_all_pages_and_those_that_get_ours_or_lead_to_us_are_asked_for_targets() {
        let spot =
            json!({"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}).to_string();
        let first = json!({"Rules": [{"Name": "one", "EventPattern": spot}, {"Name": "none", "EventPattern": "{\"source\":[\"aws.s3\"]}"}],
            "NextToken": "second"});
        let schedule = json!({"Name": "schedule", "ScheduleExpression": "rate(1 day)"});
        let second = json!({"Rules": [{"Name": "two", "EventPattern": spot, "State": "DISABLED"}, schedule]});
        let input = json!({"Targets": [{"Id": "1", "Arn": "arn-2", "InputTransformer": {"InputTemplate": "{}"}}]});
        let targets = |rule: &str, arn: &str| {
            call("ListTargetsByRule").with(rule).says(200, json!({"Targets": [{"Id": "1", "Arn": arn}]})).at_any_time()
        };
        let aws = [
            call("ListRuleNamesByTarget").with("arn-2").says(200, json!({"RuleNames": ["two", "schedule"]})),
            call("ListRules").without("NextToken").says(200, first),
            call("ListRules").with("second").says(200, second),
            targets("one", "arn-1"),
            targets("two", "arn-2"),
            call("ListTargetsByRule").with("schedule").says(200, input).at_any_time(),
        ];
        let context = TestContext::new(&[], [], aws);
        let found = rules(&context.eventbridge, "arn-2", Instant::now() + Duration::from_secs(10)).await.unwrap();
        assert_eq!(found[2].targets[0].input.as_deref(), Some("{}"));
        let found: Vec<_> = found.iter().map(|rule| (rule.name.as_str(), rule.state, rule.leads_to("arn-2"))).collect();
        assert_eq!(
            found,
            [("one", State::Enabled, false), ("two", State::Disabled, true), ("schedule", State::Enabled, true)]
        );
    }
}

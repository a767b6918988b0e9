//! Lists EventBridge rules that match notices, and the targets of each rule.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::{Rule as ListedRule, RuleState, Target};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use spillway_drainer::aws::{self, CallError};
use spillway_notice::event_patterns::{EVENT_PATTERNS, EventPattern};
use tokio::time::Instant;

use super::pattern::Pattern;
use crate::retry_end;

const LIST: &str = "events:ListRules";
const TARGETS: &str = "events:ListTargetsByRule";
/// Maximum number of pages to read. A page has 100 rules. A bus has at most 300 rules by default.
const MOST_PAGES: usize = 20;
/// Maximum number of concurrent `ListTargetsByRule` calls. The whole account shares one rate limit.
const AT_ONCE: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) state: State,
    pub(super) pattern: Pattern,
    pub(super) targets: Vec<RuleTarget>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Enabled,
    Disabled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleTarget {
    pub(super) id: String,
    pub(super) arn: String,
}

impl Rule {
    pub(super) fn leads_to(&self, function: &str) -> bool {
        self.targets.iter().any(|target| target.arn == function)
    }

    pub(super) fn matches(&self, event: &EventPattern) -> bool {
        self.pattern.matches(event)
    }
}

/// Returns all rules that match a notice, except rules that an AWS service manages.
pub(super) async fn rules(client: &Client, end: Instant) -> Result<Vec<Rule>, CallError> {
    let mut listed = Vec::new();
    let mut token = None;
    for _ in 0..MOST_PAGES {
        let page = aws::until(LIST, retry_end(end), async || {
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
    let matching = listed.into_iter().filter_map(matching);
    let with_targets = stream::iter(matching).map(|rule| async move {
        let targets = aws::until(TARGETS, retry_end(end), || targets(client, &rule.name)).await?;
        Ok::<_, CallError>(Rule { targets, ..rule })
    });
    with_targets.buffered(AT_ONCE).try_collect().await
}

/// Converts a listed rule. The targets are listed later. `None` if the rule matches no notice or is managed by an AWS service.
fn matching(rule: ListedRule) -> Option<Rule> {
    let pattern = rule.event_pattern.as_deref().and_then(Pattern::parse)?;
    let state = if rule.state == Some(RuleState::Disabled) { State::Disabled } else { State::Enabled };
    let found = Rule { name: rule.name?, state, pattern, targets: Vec::new() };
    let is_matching = EVENT_PATTERNS.iter().any(|event| found.matches(event));
    (rule.managed_by.is_none() && is_matching).then_some(found)
}

/// Lists the targets of a rule. A rule has at most five targets, which fit on one page.
async fn targets(client: &Client, rule: &str) -> Result<Vec<RuleTarget>, CallError> {
    let listed = client.list_targets_by_rule().rule(rule).send().await;
    let listed = listed.map_err(|error| CallError::new(TARGETS, error))?;
    let target = |target: Target| RuleTarget { id: target.id, arn: target.arn };
    Ok(listed.targets.unwrap_or_default().into_iter().map(target).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use spillway_drainer::doubles::script::call;
    use spillway_drainer::doubles::scripted::TestContext;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rules_of_all_pages_are_listed_with_their_targets() {
        let spot =
            json!({"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}).to_string();
        let first = json!({"Rules": [{"Name": "one", "EventPattern": spot}, {"Name": "none", "EventPattern": "{\"source\":[\"aws.s3\"]}"}],
            "NextToken": "second"});
        let schedule = json!({"Name": "schedule", "ScheduleExpression": "rate(1 day)"});
        let second = json!({"Rules": [{"Name": "two", "EventPattern": spot, "State": "DISABLED"}, schedule]});
        let targets = |rule: &str, arn: &str| {
            call("ListTargetsByRule").with(rule).says(200, json!({"Targets": [{"Id": "1", "Arn": arn}]})).at_any_time()
        };
        let aws = [
            call("ListRules").without("NextToken").says(200, first),
            call("ListRules").with("second").says(200, second),
            targets("one", "arn-1"),
            targets("two", "arn-2"),
        ];
        let context = TestContext::new(&[], [], aws);
        let found = rules(&context.eventbridge, Instant::now() + Duration::from_secs(10)).await.unwrap();
        let found: Vec<_> = found.iter().map(|rule| (rule.name.as_str(), rule.state, rule.leads_to("arn-2"))).collect();
        assert_eq!(found, [("one", State::Enabled, false), ("two", State::Disabled, true)]);
    }
}

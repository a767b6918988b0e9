//! Who reaches the function: whether its rules, what they hand it, and its policy are the template's. Pure.
//!
//! Whoever has `events:PutTargets` may give a rule of ours an input of their own, which the function would believe.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use spillway_drainer::aws::CallError;
use spillway_startup::logs::chain;

use super::bus::Rule;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, PUT_BACK, Severity, counted, quoted};

const ID: CheckId = CheckId::Reach;
/// The patterns of the template's rules; `tests/template/test_doctors_rules.py` writes them.
const TEMPLATE: &str = include_str!("rules.json");

/// The function that asks, as it is deployed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deployed<'a> {
    /// Its ARN, without a version.
    pub(super) function: &'a str,
    pub(super) region: &'a str,
    pub(super) account: &'a str,
    /// The name of its stack.
    pub(super) stack: &'a str,
}

/// The check, of all rules that are known and the statements of the function's policy.
pub(super) fn look(rules: &[Rule], policy: &Result<Vec<Value>, CallError>, deployed: Deployed<'_>) -> Check {
    let leading: Vec<&Rule> = rules.iter().filter(|rule| rule.leads_to(deployed.function)).collect();
    let template: Vec<Value> = serde_json::from_str(TEMPLATE).expect("it is JSON");
    let mut findings: Vec<Finding> = Vec::new();
    let mut of_stack: Vec<&Rule> = Vec::new();
    for rule in leading {
        let found = changed(rule, &template, deployed);
        if found.as_ref().is_none_or(|found| found.id != FindingId::ForeignRule) {
            of_stack.push(rule);
        }
        findings.extend(found);
    }
    match policy {
        Ok(statements) => findings.extend(of_policy(statements, &of_stack, deployed)),
        Err(error) => {
            let what = format!("the function's policy is not known: {}", chain(error));
            findings.push(Finding::new(FindingId::PolicyUnknown, Severity::Unknown, error.action, what, PUT_BACK));
        }
    }
    let what = match findings.as_slice() {
        [] => {
            format!("{} of the template may invoke the function, with its own events", counted(of_stack.len(), "rule"))
        }
        _ => "what invokes the function is not what the template says".to_owned(),
    };
    Check::made(ID, what, findings)
}

/// A rule that leads to the function and is none of the template's, or no longer.
fn changed(rule: &Rule, template: &[Value], deployed: Deployed<'_>) -> Option<Finding> {
    let Deployed { function, region, stack, .. } = deployed;
    let name = &rule.name;
    let ours = rule.targets.iter().filter(|target| target.arn == function);
    let inputs: Vec<&str> = ours.filter_map(|target| target.input.as_deref()).collect();
    let finding = |what: &str, to_do: &str| {
        Finding::new(FindingId::RuleChanged, Severity::Fail, format!("rule {name}"), what, to_do)
    };
    let Some(pattern) = &rule.pattern else {
        let doctors = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {}});
        let is_doctors =
            inputs.iter().all(|input| serde_json::from_str::<Value>(input).is_ok_and(|input| input == doctors));
        let what = "is a schedule that gives the function something else than the doctor's event, which it believes";
        return (!is_doctors).then(|| finding(what, PUT_BACK));
    };
    if !inputs.is_empty() {
        return Some(finding("gives the function an input of somebody's own, which it believes", PUT_BACK));
    }
    if template.iter().any(|expected| is_same(expected, &pattern.written(), deployed)) {
        return None;
    }
    if name.starts_with(&format!("{stack}-")) {
        return Some(finding("has another pattern than the template's", PUT_BACK));
    }
    let targets = rule.targets.iter().filter(|target| target.arn == function);
    let ids = targets.map(|target| quoted(&target.id)).collect::<Vec<_>>().join(" ");
    let what = "leads to the function, and is no rule of its stack";
    let command = format!("aws events remove-targets --rule {} --ids {ids} --region {region}", quoted(name));
    let to_do = "see whose it is; if nobody wants it, take the function off its targets";
    Some(
        Finding::new(FindingId::ForeignRule, Severity::Warn, format!("rule {name}"), what, to_do).with_command(command),
    )
}

/// Whether a rule's pattern is the template's, in which the deployment fills in account and stack.
fn is_same(expected: &Value, written: &Value, deployed: Deployed<'_>) -> bool {
    let Deployed { region, account, stack, .. } = deployed;
    match (expected, written) {
        (Value::Object(expected), Value::String(text)) => match expected.get("Ref").and_then(Value::as_str) {
            Some("AWS::AccountId") => text == account,
            Some("AWS::StackName") => text == stack,
            Some("AWS::StackId") => text.contains(&format!(":{region}:{account}:stack/{stack}/")),
            _ => false,
        },
        (Value::Object(expected), Value::Object(written)) => {
            expected.len() == written.len()
                && expected.iter().all(|(key, one)| written.get(key).is_some_and(|other| is_same(one, other, deployed)))
        }
        (Value::Array(expected), Value::Array(written)) => {
            expected.len() == written.len()
                && expected.iter().zip(written).all(|(one, other)| is_same(one, other, deployed))
        }
        (expected, written) => expected == written,
    }
}

/// Statements that let somebody else in, and rules that none lets in.
fn of_policy(statements: &[Value], of_stack: &[&Rule], deployed: Deployed<'_>) -> Vec<Finding> {
    let Deployed { function, region, account, .. } = deployed;
    let partition = function.split(':').nth(1).unwrap_or("aws");
    let arn_of = |rule: &Rule| format!("arn:{partition}:events:{region}:{account}:rule/{}", rule.name);
    let arns: BTreeSet<String> = of_stack.iter().map(|rule| arn_of(rule)).collect();
    let mut let_in = BTreeSet::new();
    let mut findings = Vec::new();
    for statement in statements.iter().filter(|statement| statement["Effect"] == "Allow") {
        let sources = sources(statement);
        let is_of_rules = statement["Principal"] == json!({"Service": "events.amazonaws.com"});
        if is_of_rules && !sources.is_empty() && sources.iter().all(|source| arns.contains(*source)) {
            let_in.extend(sources.into_iter().map(str::to_owned));
        } else {
            findings.push(foreign(statement, function, region));
        }
    }
    let not_let_in = of_stack.iter().filter(|rule| !let_in.contains(&arn_of(rule)));
    findings.extend(not_let_in.map(|rule| {
        let (name, arn) = (quoted(&rule.name), quoted(arn_of(rule)));
        let what = "the function's policy does not let it in: nothing that it gets reaches the function";
        let command = format!(
            "aws lambda add-permission --function-name {function} --statement-id {name} --action lambda:InvokeFunction \
             --principal events.amazonaws.com --source-arn {arn} --region {region}"
        );
        Finding::new(FindingId::PermissionMissing, Severity::Fail, format!("rule {}", rule.name), what, "let it in")
            .with_command(command)
    }));
    findings
}

/// The ARNs that a statement is limited to, if it says nothing else.
fn sources(statement: &Value) -> Vec<&str> {
    let conditions = statement["Condition"].as_object();
    let keys = conditions.into_iter().flatten().filter(|(operator, _)| operator.starts_with("Arn"));
    let keys = keys.filter_map(|(_, keys)| keys.as_object()).flatten();
    let of_sources = keys.filter(|(key, _)| key.eq_ignore_ascii_case("aws:SourceArn"));
    let values = of_sources.flat_map(|(_, value)| match value {
        Value::Array(several) => several.iter().collect(),
        one => vec![one],
    });
    values.filter_map(Value::as_str).collect()
}

fn foreign(statement: &Value, function: &str, region: &str) -> Finding {
    let id = statement["Sid"].as_str().unwrap_or_default();
    let what = format!("lets somebody in whom the template does not: {}", statement["Principal"]);
    let to_do = "take it out, unless it is yours: whoever invokes the function can do all that it may";
    let command = format!(
        "aws lambda remove-permission --function-name {function} --statement-id {} --region {region}",
        quoted(id)
    );
    let object = format!("statement {id} of the function's policy");
    Finding::new(FindingId::ForeignPermission, Severity::Fail, object, what, to_do)
        .with_command_if((!id.is_empty()).then_some(command))
}

#[cfg(test)]
mod tests {
    use super::super::bus::{RuleTarget, State};
    use super::super::pattern::Pattern;
    use super::*;

    const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:spillway-Drain-1";
    const DEPLOYED: Deployed<'_> =
        Deployed { function: FUNCTION, region: "us-east-1", account: "123456789012", stack: "spillway" };

    fn rule(name: &str, pattern: Option<&Value>, input: Option<&str>) -> Rule {
        let target = RuleTarget { id: "t".to_owned(), arn: FUNCTION.to_owned(), input: input.map(str::to_owned) };
        let pattern = pattern.map(|pattern| Pattern::parse(&pattern.to_string()).unwrap());
        Rule { name: name.to_owned(), state: State::Enabled, pattern, targets: vec![target] }
    }

    /// The template's rules, as the deployment has filled them in.
    fn deployed() -> Vec<Rule> {
        let filled = TEMPLATE
            .replace(r#"{"Ref": "AWS::AccountId"}"#, r#""123456789012""#)
            .replace(r#"{"Ref": "AWS::StackName"}"#, r#""spillway""#)
            .replace(
                r#"{"Ref": "AWS::StackId"}"#,
                r#""arn:aws:cloudformation:us-east-1:123456789012:stack/spillway/1-2""#,
            );
        let patterns: Vec<Value> = serde_json::from_str(&filled).unwrap();
        let doctor = r#"{"source": "spillway", "detail-type": "Spillway Doctor", "detail": {}}"#;
        let rules =
            patterns.iter().enumerate().map(|(n, pattern)| rule(&format!("spillway-Drain{n}"), Some(pattern), None));
        rules.chain([rule("spillway-DrainSelfTest", None, Some(doctor))]).collect()
    }

    fn permission(rule: &str) -> Value {
        let arn = format!("arn:aws:events:us-east-1:123456789012:rule/{rule}");
        json!({"Sid": format!("of-{rule}"), "Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"},
            "Action": "lambda:InvokeFunction", "Resource": FUNCTION, "Condition": {"ArnLike": {"AWS:SourceArn": arn}}})
    }

    fn permissions(rules: &[Rule]) -> Vec<Value> {
        rules.iter().map(|rule| permission(&rule.name)).collect()
    }

    fn found(rules: &[Rule], policy: Vec<Value>) -> Vec<(FindingId, String)> {
        let check = look(rules, &Ok(policy), DEPLOYED);
        check.findings.into_iter().map(|finding| (finding.id, finding.object)).collect()
    }

    #[test]
    fn of_the_template_as_it_is_deployed_nothing_is_found() {
        let rules = deployed();
        assert_eq!(found(&rules, permissions(&rules)), []);
        let arns: Vec<_> =
            permissions(&rules).iter().map(|one| one["Condition"]["ArnLike"]["AWS:SourceArn"].clone()).collect();
        let lock = [
            json!({"Sid": "TheRulesOfTheStack", "Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"},
                "Condition": {"ArnEquals": {"aws:SourceArn": arns}}}),
            json!({"Sid": "NobodyElse", "Effect": "Deny", "Principal": "*"}),
        ];
        assert_eq!(found(&rules, lock.to_vec()), []);
    }

    #[test]
    fn an_input_or_a_pattern_of_somebodys_own_is_found() {
        let rules = deployed();
        for (at, input) in (0..rules.len()).map(|at| (at, r#"{"spillway-continuation": {}}"#)) {
            let mut tampered = rules.clone();
            tampered[at].targets[0].input = Some(input.to_owned());
            let object = format!("rule {}", rules[at].name);
            assert_eq!(found(&tampered, permissions(&rules)), [(FindingId::RuleChanged, object)]);
        }
        for pattern in [json!({"source": ["theirs"]}), json!({"source": ["aws.ec2", "theirs"]})] {
            let mut tampered = rules.clone();
            tampered[0].pattern = Pattern::parse(&pattern.to_string());
            assert_eq!(
                found(&tampered, permissions(&rules)),
                [(FindingId::RuleChanged, "rule spillway-Drain0".to_owned())]
            );
        }
    }

    #[test]
    fn a_rule_of_somebody_elses_is_found_with_the_command_that_takes_the_function_off() {
        let mut rules = deployed();
        let policy = permissions(&rules);
        rules.push(rule("theirs", Some(&json!({"source": ["theirs"]})), None));
        let let_in = found(&rules, [policy.clone(), vec![permission("theirs")]].concat());
        let permitted = "statement of-theirs of the function's policy".to_owned();
        assert_eq!(let_in[0], (FindingId::ForeignPermission, permitted));
        let check = look(&rules, &Ok(policy), DEPLOYED);
        let [finding] = check.findings.as_slice() else { panic!("{check:#?}") };
        assert_eq!((finding.id, finding.severity), (FindingId::ForeignRule, Severity::Warn));
        let command = finding.command.as_deref();
        assert_eq!(command, Some("aws events remove-targets --rule theirs --ids t --region us-east-1"));
    }

    #[test]
    fn whoever_else_the_policy_lets_in_is_found() {
        let rules = deployed();
        let theirs = [
            permission("theirs"),
            json!({"Sid": "all", "Effect": "Allow", "Principal": "*", "Action": "lambda:InvokeFunction"}),
            json!({"Sid": "any", "Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}}),
        ];
        for statement in theirs {
            let object = format!("statement {} of the function's policy", statement["Sid"].as_str().unwrap());
            let policy = [permissions(&rules), vec![statement]].concat();
            assert_eq!(found(&rules, policy), [(FindingId::ForeignPermission, object)]);
        }
    }

    #[test]
    fn a_rule_that_the_policy_does_not_let_in_is_found() {
        let rules = deployed();
        let policy = permissions(&rules)[1..].to_vec();
        assert_eq!(found(&rules, policy), [(FindingId::PermissionMissing, "rule spillway-Drain0".to_owned())]);
        assert_eq!(found(&rules, Vec::new()).len(), rules.len());
    }
}

//! The doctor finds and names each fault of the account, and changes nothing.
//!
//! Rules and groups belong to the whole world, so the test is the only one of this program.

use serde_json::{Value, json};
use spillway_bed::World;
use spillway_bed::aws::{Fault, Hook};
use spillway_bed::lambda::Lambda;
use spillway_e2e::{answer, function, sample, world};

/// Settings with every kind of notice, so that the doctor expects every rule.
const SETTINGS: [(&str, &str); 2] = [("SPILLWAY_CORDON_ON", "rebalance"), ("SPILLWAY_LAUNCH", "ABANDON")];
const CHECKS: [&str; 10] = [
    "clusters",
    "dry-run",
    "aws-rights",
    "rules",
    "event-sources",
    "drainers",
    "concurrency",
    "hooks",
    "sign-in",
    "nth",
];

struct Account {
    world: &'static World,
    lambda: Lambda,
}

impl Account {
    /// An account without a fault.
    async fn set() -> Self {
        let world = world().await;
        let account = Self { world, lambda: function(world, "doctor-account", &SETTINGS).await };
        account.put_group(&[hook("spillway")]).await;
        account
    }

    /// Puts a group of the world's cluster with these hooks.
    async fn put_group(&self, hooks: &[Hook]) {
        let tag = format!("kubernetes.io/cluster/{}", self.world.cluster);
        let group = self.world.aws_side().put_tagged_group("workers", hooks, &[(tag.as_str(), "owned")]).await;
        group.expect("a group");
    }

    /// Asserts the doctor's findings in the account, as `severity id object`.
    async fn assert_findings(&self, expected: &[&str]) {
        let outcome = self.lambda.invoke(&sample("doctor")).await;
        let checks = answer(&outcome)["checks"].as_array().expect("checks").iter();
        let of_account = checks.filter(|check| CHECKS.iter().any(|id| check["id"] == *id));
        let findings = of_account.flat_map(|check| check["findings"].as_array().into_iter().flatten());
        assert_eq!(findings.map(summary).collect::<Vec<_>>(), expected);
    }
}

/// A finding in short. Each has a cause and a remedy.
fn summary(finding: &Value) -> String {
    let text =
        |key: &str| finding[key].as_str().filter(|text| !text.is_empty()).unwrap_or_else(|| panic!("{finding:#}"));
    assert!(text("what").len() > 20 && !text("to_do").is_empty(), "{finding:#}");
    format!("{} {} {}", text("severity"), text("id"), text("object"))
}

/// A terminate hook as in docs/install.md.
fn hook(name: &str) -> Hook {
    Hook { default_result: "CONTINUE".to_owned(), ..Hook::terminate(name) }
}

#[tokio::test]
async fn each_fault_of_the_account_is_found_and_named() {
    let account = Account::set().await;
    let (aws, key) = (account.world.aws_side(), account.lambda.access_key_id());
    account.assert_findings(&[]).await;

    aws.switch_rule("DrainLifecycleAction", "DISABLED").await.expect("the rule exists");
    account.assert_findings(&["fail rule-disabled rule DrainLifecycleAction"]).await;
    aws.switch_rule("DrainLifecycleAction", "ENABLED").await.expect("the rule exists");

    // One call of each protocol, and one whose right has another name.
    for (service, action, code, right) in [
        ("ec2", "DescribeInstances", "UnauthorizedOperation", "ec2:DescribeInstances"),
        ("autoscaling", "CompleteLifecycleAction", "AccessDenied", "autoscaling:CompleteLifecycleAction"),
        ("events", "PutEvents", "AccessDeniedException", "events:PutEvents"),
        ("lambda", "Invoke", "AccessDeniedException", "lambda:InvokeFunction"),
        ("scheduler", "GetSchedule", "AccessDeniedException", "scheduler:GetSchedule"),
    ] {
        let message = format!("not authorized to perform: {service}:{action}");
        aws.add_fault(&Fault::refusal((key, service, action), 403, code, &message)).await.expect("a fault");
        account.assert_findings(&[&format!("fail aws-right-missing {right}")]).await;
        aws.clear_faults(key).await.expect("no fault");
    }

    account.put_group(&[]).await;
    account.assert_findings(&["fail hook-missing Auto Scaling group workers"]).await;
    account.put_group(&[hook("spillway")]).await;

    // The rule of NTH's installation page.
    let queue = "arn:aws:sqs:us-east-1:123456789012:MyK8sTermQueue";
    let pattern = json!({"source": ["aws.autoscaling"], "detail-type": ["EC2 Instance-terminate Lifecycle Action"]});
    aws.put_rule("MyK8sASGTermRule", &pattern, queue).await.expect("the rule is new");
    account.assert_findings(&[&format!("warn second-drainer {queue}")]).await;
    aws.delete_rule("MyK8sASGTermRule").await.expect("the rule existed");

    account.assert_findings(&[]).await;
    assert!(aws.schedules(key).await.expect("schedules").is_empty());
    assert!(aws.take_deliveries(key).await.expect("deliveries").is_empty(), "the function was not invoked");
    assert!(aws.failures().await.expect("the queue").is_empty());
}

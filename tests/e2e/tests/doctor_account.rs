//! The doctor: what is broken in the account is found and named, one thing at a time, and nothing is changed.
//!
//! Rules and groups are everybody's in this world, so this is the only test in it.

use serde_json::{Value, json};
use spillway_bed::World;
use spillway_bed::aws::{Fault, Hook};
use spillway_bed::lambda::Lambda;
use spillway_e2e::{function, sample, world};

/// Every kind of notice is wanted, so that every rule is missed.
const WANTED: [(&str, &str); 2] = [("SPILLWAY_CORDON_ON", "rebalance"), ("SPILLWAY_LAUNCH", "ABANDON")];

/// What is broken, what is found then.
struct Account {
    world: &'static World,
    lambda: Lambda,
}

impl Account {
    /// An account in which nothing is broken.
    async fn set() -> Self {
        Self::set_with("doctor-account", &WANTED).await
    }

    /// The same for a function of that name and with these settings.
    async fn set_with(name: &str, settings: &[(&str, &str)]) -> Self {
        let world = world().await;
        let account = Self { world, lambda: function(world, name, settings).await };
        account.put_group(&[hook("spillway")]).await;
        account
    }

    /// A group with nodes in the world's cluster, that has these hooks and no other.
    async fn put_group(&self, hooks: &[Hook]) {
        let tag = format!("kubernetes.io/cluster/{}", self.world.cluster);
        let group = self.world.aws_side().put_tagged_group("workers", hooks, &[(tag.as_str(), "owned")]).await;
        group.expect("the group is put");
    }

    async fn deny(&self, service: &str, action: &str) {
        let code = match service {
            "ec2" => "UnauthorizedOperation",
            "autoscaling" => "AccessDenied",
            _ => "AccessDeniedException",
        };
        let fault = Fault {
            status: Some(403),
            code: Some(code.to_owned()),
            message: Some(format!("not authorized to perform: {service}:{action}")),
            ..Fault::of(self.lambda.access_key_id(), service, action)
        };
        self.world.aws_side().add_fault(&fault).await.expect("a fault");
    }

    async fn allow_all(&self) {
        self.world.aws_side().clear_faults(self.lambda.access_key_id()).await.expect("no fault");
    }

    /// What the doctor finds in the account, as `severity id object`.
    async fn findings(&self) -> Vec<String> {
        let outcome = self.lambda.invoke(&sample("doctor")).await;
        let report = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error:?} {outcome:#?}"));
        let checks = report["checks"].as_array().expect("checks").iter();
        let of_account = [
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
        let findings = checks
            .filter(|check| of_account.iter().any(|id| check["id"] == *id))
            .flat_map(|check| check["findings"].as_array().into_iter().flatten());
        findings.map(told).collect()
    }
}

/// A finding in short. It says what is so and what to do.
fn told(finding: &Value) -> String {
    let text =
        |key: &str| finding[key].as_str().filter(|text| !text.is_empty()).unwrap_or_else(|| panic!("{finding:#}"));
    assert!(text("what").len() > 20 && !text("to_do").is_empty(), "{finding:#}");
    format!("{} {} {}", text("severity"), text("id"), text("object"))
}

/// A terminate hook as docs/install.md has it.
fn hook(name: &str) -> Hook {
    Hook { default_result: "CONTINUE".to_owned(), ..Hook::terminate(name) }
}

#[tokio::test]
async fn each_thing_that_is_broken_in_the_account_is_found_and_named() {
    let account = Account::set().await;
    assert_eq!(account.findings().await, [] as [&str; 0], "nothing is broken");

    rule_that_is_off(&account).await;
    rights_that_are_missing(&account).await;
    hooks_of_groups(&account).await;
    second_drainer(&account).await;

    assert_eq!(account.findings().await, [] as [&str; 0], "all is mended");
    let aws = account.world.aws_side();
    let key = account.lambda.access_key_id();
    assert!(aws.schedules(key).await.expect("schedules").is_empty());
    assert!(aws.take_deliveries(key).await.expect("deliveries").is_empty(), "the function was not invoked");
    assert!(aws.failures().await.expect("the queue").is_empty());
}

async fn rule_that_is_off(account: &Account) {
    let (aws, rule) = (account.world.aws_side(), "DrainLifecycleAction");
    aws.switch_rule(rule, "DISABLED").await.expect("there is such a rule");
    assert_eq!(account.findings().await, [format!("fail rule-disabled rule {rule}")]);
    aws.switch_rule(rule, "ENABLED").await.expect("it is still there");
}

/// One call in the words of each protocol, and one whose right has another name.
async fn rights_that_are_missing(account: &Account) {
    for (service, action, found) in [
        ("ec2", "DescribeInstances", "fail aws-right-missing ec2:DescribeInstances"),
        ("autoscaling", "CompleteLifecycleAction", "fail aws-right-missing autoscaling:CompleteLifecycleAction"),
        ("events", "PutEvents", "fail aws-right-missing events:PutEvents"),
        ("lambda", "Invoke", "fail aws-right-missing lambda:InvokeFunction"),
        ("scheduler", "GetSchedule", "fail aws-right-missing scheduler:GetSchedule"),
    ] {
        account.deny(service, action).await;
        assert_eq!(account.findings().await, [found]);
        account.allow_all().await;
    }
}

async fn hooks_of_groups(account: &Account) {
    account.put_group(&[]).await;
    assert_eq!(account.findings().await, ["fail hook-missing Auto Scaling group workers"]);

    account.put_group(&[Hook::terminate("spillway"), hook("dns")]).await;
    let of_group = |found: &str, hook: &str| format!("warn {found} hook {hook} of Auto Scaling group workers");
    let expected = [of_group("hook-default-abandon", "spillway"), of_group("hook-left-to-others", "dns")];
    assert_eq!(account.findings().await, expected);

    account.put_group(&[hook("spillway")]).await;
}

/// As NTH's own page makes it.
async fn second_drainer(account: &Account) {
    let (aws, queue) = (account.world.aws_side(), "arn:aws:sqs:us-east-1:123456789012:MyK8sTermQueue");
    let pattern = json!({"source": ["aws.autoscaling"], "detail-type": ["EC2 Instance-terminate Lifecycle Action"]});
    aws.put_rule("MyK8sASGTermRule", &pattern, queue).await.expect("the rule is new");
    assert_eq!(account.findings().await, [format!("warn second-drainer {queue}")]);
    aws.delete_rule("MyK8sASGTermRule").await.expect("it is there");
}

//! A notice in the middle of an update: Lambda changes code and variables in two steps, so that one of them is another
//! version's for a moment.

use std::time::Duration;

use spillway_bed::lambda::{Account, Lambda, LambdaOptions};
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, receipt};

/// What the template gave the function before `DrainOn` and `Taints` took the place of several parameters.
const BEFORE: [(&str, &str); 9] = [
    ("SPILLWAY_SPOT", "drain"),
    ("SPILLWAY_REBALANCE", "ignore"),
    ("SPILLWAY_TERMINATE", "drain"),
    ("SPILLWAY_LAUNCH", "ignore"),
    ("SPILLWAY_KARPENTER", "leave"),
    ("SPILLWAY_HEARTBEAT_S", "half"),
    ("SPILLWAY_HELD_PODS", "keep"),
    ("SPILLWAY_TAINT", "none"),
    ("SPILLWAY_DRY_RUN", "false"),
];
/// Of a version that is still to come.
const AFTER: [(&str, &str); 2] = [("SPILLWAY_FROM_A_LATER_VERSION", "yes"), ("SPILLWAY_DRAIN_ON", "spot")];

#[tokio::test]
async fn the_function_drains_with_the_variables_of_the_version_before_or_after() {
    for (name, variables, unknown) in
        [("new-code", &BEFORE[..], "SPILLWAY_HELD_PODS"), ("old-code", &AFTER[..], "SPILLWAY_FROM_A_LATER_VERSION")]
    {
        let stage = Stage::set(name).await;
        stage.deploy("web", 2, PodShape::default()).await;
        let credentials = stage.world.aws_side().credentials("spillway-drain", name).await.expect("credentials");
        let account = Account {
            endpoint: stage.world.aws.clone(),
            region: stage.world.region.clone(),
            id: stage.world.account.clone(),
            credentials,
        };
        // Nothing of the template's of today beside them.
        let env = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let options = LambdaOptions { function_name: name.to_owned(), env, ..LambdaOptions::default() };
        let lambda = Lambda::in_account(account, options);

        let outcome = lambda.invoke(stage.interrupt(Duration::from_secs(120)).await).await;

        assert_eq!(receipt(&outcome)["ending"], "drained", "{outcome:#?}");
        let warned = outcome.logs.iter().any(|line| line.contains(&format!("{unknown} is no setting of this version")));
        assert!(warned, "{outcome:#?}");
    }
}

use serde_json::json;
use spillway_core::decision::Reason;
use spillway_core::instance::InstanceState;
use spillway_core::node::uncordon::UncordonResult;
use spillway_core::outcome::{Outcome, UncordonOutcome};
use spillway_notice::{Deadline, Kind, Maintenance};

use crate::actions::uncordon::uncordon;
use crate::failure::Failure;
use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, list, node, status};
use crate::test_support::aws::not_scheduled;
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

fn stopped() -> serde_json::Value {
    claimed(Kind::Stopping.as_str(), "e-0", "r-0")
}

fn given_back() -> Expected {
    let patch = call(format!("PATCH {NODE_PATH}")).with(r#""op":"remove","path":"/spec/unschedulable""#);
    patch.with("spillway~1claim").says(200, node())
}

async fn runs_again(case: Case, api: impl IntoIterator<Item = Expected>) -> Result<Outcome, Failure> {
    let context = TestContext::new(&[], api, []);
    let attempt = case.attempt(&context).await;
    uncordon(&context, &case.target(&attempt), &mut Record::default()).await
}

fn result_of(outcome: Outcome) -> UncordonResult {
    match outcome {
        Outcome::Uncordon(UncordonOutcome::Uncordoned { result, .. }) => result,
        outcome => panic!("{outcome:?}"),
    }
}

fn running() -> Case {
    Case::of(Kind::Running, Deadline::Open)
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_taken_out_for_a_stop_is_given_back_when_it_runs_again() {
    let looked_at = call(format!("GET {NODE_PATH}")).says(200, stopped());
    let outcome = runs_again(running(), [looked_at, given_back()]).await.unwrap();
    assert_eq!(result_of(outcome), UncordonResult::GivenBack { node: NODE.to_owned() });
}

/// An API server that has just started refuses everything until it has read the roles.
#[tokio::test(start_paused = true)]
async fn a_node_of_a_cluster_that_lets_nobody_in_for_a_moment_is_given_back() {
    for (code, reason) in [(401, "Unauthorized"), (403, "Forbidden")] {
        let look = || call(format!("GET {NODE_PATH}"));
        let refused = look().says(code, status(code, reason, "nodes"));
        let outcome = runs_again(running(), [refused, look().says(200, stopped()), given_back()]).await.unwrap();
        assert_eq!(result_of(outcome), UncordonResult::GivenBack { node: NODE.to_owned() });
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_change_was_made_and_its_answer_lost_is_given_back() {
    let look = |node| call(format!("GET {NODE_PATH}")).says(200, node);
    let lost = call(format!("PATCH {NODE_PATH}")).lost();
    let outcome = runs_again(running(), [look(stopped()), lost, look(node())]).await.unwrap();
    assert_eq!(result_of(outcome), UncordonResult::GivenBack { node: NODE.to_owned() });
    let outcome = runs_again(running(), [look(node())]).await.unwrap();
    assert_eq!(result_of(outcome), UncordonResult::NotOurs { node: NODE.to_owned() });
}

#[tokio::test(start_paused = true)]
async fn a_node_that_changed_in_between_is_looked_at_again() {
    let looked_at = || call(format!("GET {NODE_PATH}")).says(200, stopped());
    let contended = call(format!("PATCH {NODE_PATH}")).says(422, status(422, "Invalid", "nodes"));
    let outcome = runs_again(running(), [looked_at(), contended, looked_at(), given_back()]).await.unwrap();
    assert_eq!(result_of(outcome), UncordonResult::GivenBack { node: NODE.to_owned() });
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_goes_down_again_is_another_notices() {
    let mut case = running();
    case.instance.state = InstanceState::GoingDown;
    let outcome = runs_again(case, []).await.unwrap();
    assert!(matches!(outcome, Outcome::Uncordon(UncordonOutcome::Ignored(Reason::NotUp(_)))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_never_is_ready_again_is_a_failure() {
    let mut silent = stopped();
    silent["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    let nodes = || call("GET /api/v1/nodes").with("metadata.name");
    let api = [
        call(format!("GET {NODE_PATH}")).says(200, &silent).repeated().at_any_time(),
        nodes().without("watch=true").says(200, list("Node", &[silent])).at_any_time(),
        // It is renewed as often as the API server ends it.
        nodes().with("watch=true").streams(&[]).repeated().at_any_time(),
    ];
    let failure = runs_again(running(), api).await.unwrap_err();
    assert!(matches!(failure, Failure::NotBack { .. }), "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn maintenance_that_is_called_off_takes_its_schedule_along() {
    let own = not_scheduled(&format!("{NODE}.M-1"));
    // It gave way to others, and waits for its turn.
    let second = call(format!("DELETE /schedules/{NODE}.M-1.again")).says(200, json!({}));
    let api = [call(format!("GET {NODE_PATH}")).says(200, node())];
    let (context, mut case) =
        (TestContext::new(&[], api, [own, second]), Case::of(Kind::MaintenanceOver, Deadline::Open));
    case.notice.maintenance = Some(Maintenance { id: "M-1".to_owned(), reboots: false, starts: None });
    let attempt = case.attempt(&context).await;
    let outcome = uncordon(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    assert!(matches!(outcome, Outcome::CalledOff { .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_a_late_notice_of_the_same_maintenance_may_yet_claim_is_looked_at_once_more() {
    let look = call(format!("POST /schedules/{NODE}.M-1.over.0")).with("spillway-undo-check").says(200, json!({}));
    let api = [call(format!("GET {NODE_PATH}")).says(200, node())];
    let none = ["M-1", "M-1.again"].map(|name| not_scheduled(&format!("{NODE}.{name}")));
    let (context, mut case) =
        (TestContext::new(&[], api, none.into_iter().chain([look])), Case::of(Kind::MaintenanceOver, Deadline::Open));
    case.notice.maintenance = Some(Maintenance { id: "M-1".to_owned(), reboots: false, starts: None });
    let attempt = case.attempt(&context).await;
    let outcome = uncordon(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    assert!(matches!(outcome, Outcome::Uncordon(UncordonOutcome::LookedAgain { .. })), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_runs_is_not_searched_for_among_all_nodes() {
    let none = call(format!("GET {NODE_PATH}")).says(404, status(404, "NotFound", "nodes"));
    let outcome = runs_again(running(), [none]).await.unwrap();
    assert_eq!(result_of(outcome), UncordonResult::NoNode);
}

use spillway_core::instance::InstanceState;
use spillway_core::node::uncordon::UncordonResult;
use spillway_core::outcome::UncordonOutcome;

use super::*;
use crate::actions::uncordon::uncordon;

fn stopped() -> Value {
    claimed(Kind::Stopping.as_str(), "e-0", "r-0")
}

async fn uncordoned(
    case: Case,
    api: impl IntoIterator<Item = Expected>,
    aws: impl IntoIterator<Item = Expected>,
) -> Result<Outcome, Failure> {
    let context = TestContext::new(&[], api, aws);
    let attempt = case.attempt(&context).await;
    uncordon(&context, &case.target(&attempt), &mut Record::default()).await
}

fn running() -> Case {
    Case::of(Kind::Running, Deadline::Open)
}

async fn of_running(api: impl IntoIterator<Item = Expected>) -> UncordonResult {
    match uncordoned(running(), api, []).await.unwrap() {
        Outcome::Uncordon(UncordonOutcome::Uncordoned { result, .. }) => result,
        outcome => panic!("{outcome:?}"),
    }
}

fn given_back() -> UncordonResult {
    UncordonResult::GivenBack { node: NODE.to_owned() }
}

/// An API server that has just started refuses everything until it has read the roles.
#[tokio::test(start_paused = true)]
async fn node_is_given_back_after_a_refusal() {
    for (code, reason) in [(401, "Unauthorized"), (403, "Forbidden")] {
        let refused = call(format!("GET {NODE_PATH}")).says(code, status(code, reason, "nodes"));
        let uncordon = uncordon_node().with("spillway~1claim");
        assert_eq!(of_running([refused, read_node(stopped()), uncordon]).await, given_back());
    }
}

#[tokio::test(start_paused = true)]
async fn lost_answer_to_an_uncordon_counts_as_given_back() {
    assert_eq!(of_running([read_node(stopped()), patch_node().lost(), read_node(node())]).await, given_back());
    let untouched = UncordonResult::NotOurs { node: NODE.to_owned() };
    assert_eq!(of_running([read_node(node())]).await, untouched);
}

#[tokio::test(start_paused = true)]
async fn changed_node_is_read_again() {
    let contended = patch_node().says(422, status(422, "Invalid", "nodes"));
    let api = [read_node(stopped()), contended, read_node(stopped()), uncordon_node()];
    assert_eq!(of_running(api).await, given_back());
}

#[tokio::test(start_paused = true)]
async fn running_instance_is_not_searched_among_all_nodes() {
    assert_eq!(of_running([no_node()]).await, UncordonResult::NoNode);
}

#[tokio::test(start_paused = true)]
async fn instance_that_goes_down_again_is_left_to_its_notice() {
    let mut case = running();
    case.instance.state = InstanceState::GoingDown;
    let outcome = uncordoned(case, [], []).await.unwrap();
    assert!(matches!(outcome, Outcome::Uncordon(UncordonOutcome::Ignored(Reason::NotUp(_)))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn node_that_stays_not_ready_is_a_failure() {
    let mut silent = stopped();
    silent["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    // The watch is renewed as often as the API server ends it.
    let watch = watch_node().streams(&[]).repeated().at_any_time();
    let api = [read_node(&silent).repeated().at_any_time(), list_node(silent).at_any_time(), watch];
    let failure = uncordoned(running(), api, []).await.unwrap_err();
    assert!(matches!(failure, Failure::NotBack { .. }), "{failure:?}");
}

/// Without a schedule a late notice of the same maintenance may still claim the node: another check follows.
#[tokio::test(start_paused = true)]
async fn finished_maintenance_deletes_its_schedule_or_checks_again() {
    let none = |name: &str| not_scheduled(&format!("{NODE}.{name}"));
    let waits_for_its_turn = call(format!("DELETE /schedules/{NODE}.M-1.again")).says(200, json!({}));
    let check = call(format!("POST /schedules/{NODE}.M-1.over.0")).with("spillway-undo-check").says(200, json!({}));
    for (aws, is_called_off) in
        [(vec![none("M-1"), waits_for_its_turn], true), (vec![none("M-1"), none("M-1.again"), check], false)]
    {
        let mut case = Case::of(Kind::MaintenanceOver, Deadline::Open);
        case.notice.maintenance = Some(maintenance("M-1"));
        let outcome = uncordoned(case, [read_node(node())], aws).await.unwrap();
        let is_expected = match &outcome {
            Outcome::CalledOff { .. } => is_called_off,
            Outcome::Uncordon(UncordonOutcome::CheckedTooEarly { .. }) => !is_called_off,
            _ => false,
        };
        assert!(is_expected, "{outcome:?}");
    }
}

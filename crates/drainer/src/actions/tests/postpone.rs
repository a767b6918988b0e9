use spillway_core::node::uncordon::UncordonResult;

use super::*;
use crate::actions::postpone::{Postponement, postpone};

const SCHEDULE: &str = "i-0123456789abcdef0.M-1";
const SECOND: &str = "i-0123456789abcdef0.M-1.again";
/// Schedules that have fired would fill the account's quota.
const DELETES_ITSELF: &str = r#""ActionAfterCompletion":"DELETE""#;

async fn postponed(
    api: impl IntoIterator<Item = Expected>,
    aws: impl IntoIterator<Item = Expected>,
) -> Result<UncordonResult, Failure> {
    let (context, mut case) = (TestContext::new(&[], api, aws), Case::spot());
    (case.notice.kind, case.notice.maintenance) = (Kind::Maintenance, Some(maintenance("M-1")));
    case.history = case.history.with(Record::default().summary(&case.notice, &case.invocation), None);
    let attempt = case.attempt(&context).await;
    let (begins, mut record) = (at("1970-01-02T00:00:00Z"), Record::default());
    match postpone(&context, &case.target(&attempt), begins, Postponement::Scheduled, &mut record).await? {
        Outcome::Postponed { uncordoned, .. } => Ok(uncordoned),
        other => panic!("{other:?}"),
    }
}

/// A schedule that exists is moved. One that fires meanwhile is created again.
#[tokio::test(start_paused = true)]
async fn schedule_delivers_the_notice_again() {
    let created = scheduled(SCHEDULE).with("at(1970-01-02T00:00:00)").with("spillway-continuation").with("e-1");
    let created = created.with(r#"\"earlier\":[]"#).with(DELETES_ITSELF);
    let exists = || call(format!("POST /schedules/{SCHEDULE}")).says(409, json_error("ConflictException"));
    let put = || call(format!("PUT /schedules/{SCHEDULE}")).with("at(1970-01-02T00:00:00)").with(DELETES_ITSELF);
    let moved = put().says(200, r#"{"ScheduleArn": "arn"}"#);
    let fired = put().says(404, json_error("ResourceNotFoundException"));
    for calls in [vec![created], vec![exists(), moved], vec![exists(), fired, scheduled(SCHEDULE)]] {
        let aws = calls.into_iter().chain([not_scheduled(SECOND)]);
        let untouched = UncordonResult::NotOurs { node: NODE.to_owned() };
        assert_eq!(postponed([read_node(node())], aws).await.unwrap(), untouched);
    }
}

#[tokio::test(start_paused = true)]
async fn node_of_a_moved_maintenance_is_given_back() {
    let mut ours = claimed(Kind::Maintenance.as_str(), "e-0", "r-0");
    let annotation = ours["metadata"]["annotations"]["spillway/claim"].as_str().unwrap();
    let annotation = annotation.replacen('{', r#"{"maintenance":"M-1","#, 1);
    ours["metadata"]["annotations"]["spillway/claim"] = annotation.into();
    let aws = [scheduled(SCHEDULE), not_scheduled(SECOND)];
    let given_back = UncordonResult::GivenBack { node: NODE.to_owned() };
    assert_eq!(postponed([read_node(ours), uncordon_node()], aws).await.unwrap(), given_back);
}

/// A continuation begins at once, so the time is not shorter.
#[tokio::test(start_paused = true)]
async fn silent_cluster_is_tried_for_two_minutes() {
    let silent = call(format!("GET {NODE_PATH}")).repeated();
    let aws = [scheduled(SCHEDULE), not_scheduled(SECOND)];
    let began = Instant::now();
    let failure = postponed([silent], aws).await.unwrap_err();
    assert!(matches!(failure, Failure::Kubernetes { .. }), "{failure:?}");
    assert_eq!(began.elapsed().as_secs(), 120);
}

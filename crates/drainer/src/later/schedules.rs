//! Creates and deletes one-time schedules of EventBridge Scheduler that invoke the function.
//!
//! The name of a schedule contains the instance and the maintenance, so a changed notice updates the existing schedule.

use std::iter;

use aws_sdk_scheduler::Client;
use aws_sdk_scheduler::types::{
    ActionAfterCompletion, DeadLetterConfig, FlexibleTimeWindow, FlexibleTimeWindowMode, RetryPolicy, Target,
};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use spillway_core::clock::Clock;
use spillway_notice::{InstanceId, Kind, Maintenance, Notice, undo_check};
use spillway_settings::Schedules;
use tokio::time::Instant;

use crate::aws::{self, CallError};
use crate::failure::Failure;

const CREATE: &str = "scheduler:CreateSchedule";
const UPDATE: &str = "scheduler:UpdateSchedule";
const DELETE: &str = "scheduler:DeleteSchedule";
const LIST: &str = "scheduler:ListSchedules";
const GET: &str = "scheduler:GetSchedule";

/// Maximum length of a schedule name in EventBridge Scheduler.
const LONGEST_NAME: usize = 64;
/// Minimum time from now until a schedule fires. EventBridge Scheduler refuses a time in the past.
const LEAST_AHEAD: SignedDuration = SignedDuration::from_secs(2);
/// Maximum time in seconds for EventBridge Scheduler's retries. Afterwards, the payload goes to the failure queue.
const LONGEST_RETRY_S: i32 = 3600;
const MOST_RETRIES: i32 = 185;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScheduleName(String);

impl ScheduleName {
    /// Returns the name of the schedule for a postponed drain, unique for each instance and maintenance.
    pub(crate) fn of(notice: &Notice) -> Self {
        Self::new(&notice.instance, &purpose(notice))
    }

    /// Returns a second schedule name, for a drain that is postponed again. The first schedule may still exist after it fired.
    pub(crate) fn second(notice: &Notice) -> Self {
        Self::new(&notice.instance, &format!("{}.again", purpose(notice)))
    }

    /// Returns the names of the schedules that a maintenance lookup may have created before the notice came.
    fn of_found(notice: &Notice) -> Vec<Self> {
        let maintenance = notice.maintenance.as_ref().filter(|maintenance| !maintenance.is_found());
        let ids = maintenance.map(Maintenance::found_ids).unwrap_or_default();
        ids.iter().map(|id| Self::new(&notice.instance, id)).collect()
    }

    /// Returns the name of the schedule for an undo check, unique for each instance, maintenance and check number.
    pub(crate) fn of_check(notice: &Notice, number: u32) -> Self {
        let end = if notice.kind == Kind::MaintenanceOver { "over." } else { "" };
        Self::new(&notice.instance, &format!("{}.{end}{number}", purpose(notice)))
    }

    /// Creates the name of a schedule. Characters that EventBridge Scheduler does not allow become `-`. A long `purpose` keeps
    /// only its end, because an AWS Health event id ends with a unique number.
    fn new(instance: &InstanceId, purpose: &str) -> Self {
        let legal = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let purpose: Vec<char> = purpose.chars().map(legal).collect();
        let room = LONGEST_NAME - instance.as_str().len() - 1;
        let tail = &purpose[purpose.len().saturating_sub(room)..];
        Self(format!("{instance}.{}", tail.iter().collect::<String>()))
    }
}

fn purpose(notice: &Notice) -> String {
    match &notice.maintenance {
        Some(maintenance) => maintenance.id.clone(),
        None => notice.kind.as_str().to_owned(),
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionName<'a> {
    pub(crate) region: &'a str,
    pub(crate) name: &'a str,
}

#[derive(Debug)]
pub(crate) struct Scheduler {
    client: Client,
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    group: String,
    role_arn: String,
    function_arn: String,
    failures_arn: String,
}

impl Scheduler {
    /// Creates a client for schedules that invoke `function`. If `schedules` is `None`, the client cannot create schedules.
    pub(crate) fn new(client: Client, schedules: Option<&Schedules>, function: FunctionName<'_>) -> Self {
        let place = schedules.map(|Schedules { group, role_arn, failures_arn }| Place {
            group: group.clone(),
            role_arn: role_arn.clone(),
            function_arn: function_arn(role_arn, function.region, function.name),
            failures_arn: failures_arn.clone(),
        });
        Self { client, place }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Creates the schedule, or updates the existing schedule with this name. If `at` has passed, sets the earliest time that
    /// EventBridge Scheduler accepts. Retries until `end`.
    pub(crate) async fn put(
        &self,
        name: &ScheduleName,
        at: Timestamp,
        payload: &str,
        clock: Clock,
        end: Instant,
    ) -> Result<(), Failure> {
        let place = self.place.as_ref().ok_or(Failure::NoSchedules)?;
        let target = target(place, payload);
        // The time is calculated for each attempt, because retries may take long.
        let put = async || match self.create(place, name, &ahead(at, clock.now()), &target).await? {
            Exists::No => Ok(()),
            Exists::Yes => self.update(place, name, &ahead(at, clock.now()), &target).await,
        };
        Ok(aws::until(CREATE, end, put).await?)
    }

    /// Deletes the drain schedules of a notice, including schedules that a maintenance lookup created. Retries until `end`.
    pub(crate) async fn delete_drain_schedules(&self, notice: &Notice, end: Instant) -> Result<Deleted, Failure> {
        let own = self.delete(&ScheduleName::of(notice), end).await?;
        let others = self.delete_others(notice, end).await?;
        Ok(if own == Deleted::Yes { own } else { others })
    }

    /// Deletes the drain schedules of a notice, but keeps the schedule with the name [`ScheduleName::of`]. Retries until `end`.
    pub(crate) async fn delete_others(&self, notice: &Notice, end: Instant) -> Result<Deleted, Failure> {
        let mut deleted = Deleted::No;
        for name in iter::once(ScheduleName::second(notice)).chain(ScheduleName::of_found(notice)) {
            if self.delete(&name, end).await? == Deleted::Yes {
                deleted = Deleted::Yes;
            }
        }
        Ok(deleted)
    }

    /// Returns the times of an instance's drain schedules. Retries until `end`.
    pub(crate) async fn times_of(&self, instance: &InstanceId, end: Instant) -> Result<Vec<Timestamp>, Failure> {
        let place = self.place.as_ref().ok_or(Failure::NoSchedules)?;
        let names = aws::until(LIST, end, async || {
            let prefix = format!("{instance}.");
            let pages = self.client.list_schedules().group_name(&place.group).name_prefix(prefix);
            let listed: Result<Vec<_>, _> = pages.into_paginator().items().send().collect().await;
            listed.map_err(|error| CallError::new(LIST, error))
        });
        let mut times = Vec::new();
        for name in names.await?.into_iter().filter_map(|schedule| schedule.name) {
            let schedule = aws::until(GET, end, async || {
                let answer = self.client.get_schedule().name(&name).group_name(&place.group).send().await;
                if_found(answer.map_err(|error| CallError::new(GET, error)))
            });
            // The schedule has fired meanwhile.
            let Some(schedule) = schedule.await? else { continue };
            let is_check =
                schedule.target.and_then(|target| target.input).is_some_and(|input| input.contains(undo_check::KEY));
            times.extend(schedule.schedule_expression.filter(|_| !is_check).and_then(|at| time_of(&at)));
        }
        Ok(times)
    }

    /// Deletes the schedule if it exists. Retries until `end`.
    async fn delete(&self, name: &ScheduleName, end: Instant) -> Result<Deleted, Failure> {
        // Without a group no schedule was ever made.
        let Some(place) = &self.place else { return Ok(Deleted::No) };
        let deleted = aws::until(DELETE, end, async || {
            let answer = self.client.delete_schedule().name(&name.0).group_name(&place.group).send().await;
            if_found(answer.map_err(|error| CallError::new(DELETE, error)))
        });
        Ok(deleted.await?.map_or(Deleted::No, |_| Deleted::Yes))
    }

    async fn create(&self, place: &Place, name: &ScheduleName, at: &str, target: &Target) -> Result<Exists, CallError> {
        let request = self.client.create_schedule().name(&name.0).group_name(&place.group).target(target.clone());
        let request = request.schedule_expression(at).flexible_time_window(at_once());
        let answer = request.action_after_completion(ActionAfterCompletion::Delete).send().await;
        match answer.map_err(|error| CallError::new(CREATE, error)) {
            Ok(_) => Ok(Exists::No),
            Err(error) if error.has_code("ConflictException") => Ok(Exists::Yes),
            Err(error) => Err(error),
        }
    }

    async fn update(&self, place: &Place, name: &ScheduleName, at: &str, target: &Target) -> Result<(), CallError> {
        let request = self.client.update_schedule().name(&name.0).group_name(&place.group).target(target.clone());
        let request = request.schedule_expression(at).flexible_time_window(at_once());
        let answer = request.action_after_completion(ActionAfterCompletion::Delete).send().await;
        let updated = if_found(answer.map_err(|error| CallError::new(UPDATE, error)))?;
        updated.map(drop).ok_or_else(|| CallError::unanswered(UPDATE, "the schedule has just fired"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deleted {
    Yes,
    No,
}

/// Result of `CreateSchedule`. `Yes` if a schedule with this name existed already.
enum Exists {
    Yes,
    No,
}

/// Returns `None` if the schedule does not exist.
fn if_found<T>(answer: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match answer {
        Err(error) if error.has_code("ResourceNotFoundException") => Ok(None),
        answer => answer.map(Some),
    }
}

fn target(place: &Place, payload: &str) -> Target {
    let retry =
        RetryPolicy::builder().maximum_event_age_in_seconds(LONGEST_RETRY_S).maximum_retry_attempts(MOST_RETRIES);
    let target = Target::builder()
        .arn(&place.function_arn)
        .role_arn(&place.role_arn)
        .input(payload)
        .retry_policy(retry.build())
        .dead_letter_config(DeadLetterConfig::builder().arn(&place.failures_arn).build());
    target.build().expect("it has an ARN and a role")
}

fn at_once() -> FlexibleTimeWindow {
    FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off).build().expect("it has a mode")
}

/// Returns the schedule expression for `at`, or for the earliest time that EventBridge Scheduler accepts.
fn ahead(at: Timestamp, now: Timestamp) -> String {
    expression(at.max(now.saturating_add(LEAST_AHEAD).unwrap_or(Timestamp::MAX)))
}

/// Returns the schedule expression for a time in UTC, rounded up to seconds.
fn expression(at: Timestamp) -> String {
    let up = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil);
    at.round(up).unwrap_or(at).strftime("at(%Y-%m-%dT%H:%M:%S)").to_string()
}

fn time_of(expression: &str) -> Option<Timestamp> {
    let at = expression.strip_prefix("at(")?.strip_suffix(')')?;
    Some(at.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Returns the ARN of the function, in the partition and account of the role.
fn function_arn(role_arn: &str, region: &str, name: &str) -> String {
    let part = |at| role_arn.split(':').nth(at).unwrap_or_default();
    format!("arn:{}:lambda:{region}:{}:function:{name}", part(1), part(4))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use spillway_notice::{Deadline, Maintenance};

    use super::*;
    use crate::later::Later;
    use crate::test_support::aws::json_error;
    use crate::test_support::context::TestContext;
    use crate::test_support::script::call;
    use crate::test_support::{self, at, instance_id};

    fn name(what: &str) -> String {
        ScheduleName::new(&instance_id(), what).0
    }

    #[test]
    fn name_is_legal_and_unique_for_each_maintenance_and_check() {
        assert_eq!(name("rebalance recommendation"), "i-0123456789abcdef0.rebalance-recommendation");
        let retirement = |number: &str| name(&format!("AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED_{number}"));
        let one = retirement("90353408594353983");
        assert_eq!(one, "i-0123456789abcdef0.TANCE_RETIREMENT_SCHEDULED_90353408594353983");
        assert!(one.len() == LONGEST_NAME && one != retirement("90353408594353984"));
        assert_eq!(name("a/b: ü"), "i-0123456789abcdef0.a-b---");
        let check = |id: &str, number| {
            let maintenance = Some(Maintenance { id: id.to_owned(), reboots: true, starts: None });
            let notice = test_support::notice(Kind::Maintenance, Deadline::Hard(Timestamp::UNIX_EPOCH));
            ScheduleName::of_check(&Notice { maintenance, ..notice }, number)
        };
        assert_eq!(check("M_1", 0), check("M_1", 0));
        assert!(check("M_1", 0) != check("M_2", 0) && check("M_1", 0) != check("M_1", 1));
    }

    #[tokio::test(start_paused = true)]
    async fn schedule_is_ahead_of_each_attempt() {
        let (clock, mut times) = (Clock::starting_at(Timestamp::UNIX_EPOCH), Vec::new());
        for _ in 0..2 {
            times.push(ahead(Timestamp::UNIX_EPOCH, clock.now()));
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(times, ["at(1970-01-01T00:00:02)", "at(1970-01-01T00:00:07)"]);
    }

    #[test]
    fn time_is_rounded_up_to_seconds() {
        assert_eq!(expression("2026-12-24T02:30:00Z".parse().unwrap()), "at(2026-12-24T02:30:00)");
        assert_eq!(expression("2026-12-24T02:30:00.001Z".parse().unwrap()), "at(2026-12-24T02:30:01)");
        assert_eq!(expression(Timestamp::MAX), "at(9999-12-30T22:00:00)");
    }

    #[test]
    fn function_arn_has_partition_and_account_of_the_role() {
        assert_eq!(
            function_arn("arn:aws-cn:iam::123456789012:role/spillway-schedules", "cn-north-1", "drain"),
            "arn:aws-cn:lambda:cn-north-1:123456789012:function:drain"
        );
    }

    #[test]
    fn lookup_names_cover_the_hours_around_the_start() {
        let found = |id: &str| {
            let starts = Some(at("2026-12-24T02:30:00Z"));
            let maintenance = Some(Maintenance { id: id.to_owned(), reboots: true, starts });
            let notice = test_support::notice(Kind::Maintenance, Deadline::Open);
            ScheduleName::of_found(&Notice { maintenance, ..notice })
        };
        let hours = ["01", "02", "03"].map(|hour| ScheduleName(name(&format!("found-reboot-20261224T{hour}"))));
        assert_eq!(found("M-1"), hours);
        assert_eq!(found("found-reboot-20261224T02"), [], "the notice is the lookup's own");
    }

    /// Times of an instance with these schedules: name, status and body of each answer.
    async fn scheduled_for(schedules: &[(&str, u16, String)]) -> Result<Vec<Timestamp>, Failure> {
        let listed: Vec<_> = schedules.iter().map(|(what, ..)| json!({"Name": name(what)})).collect();
        let listed = call("GET /schedules").says(200, json!({"Schedules": listed}));
        let read = |(what, code, answer): &(&str, u16, String)| {
            call(format!("GET /schedules/{}", name(what))).says(*code, answer)
        };
        let context = TestContext::new(&[], [], [listed].into_iter().chain(schedules.iter().map(read)));
        context.scheduler.times_of(&instance_id(), Instant::now() + Duration::from_secs(1)).await
    }

    #[tokio::test(start_paused = true)]
    async fn times_leave_out_undo_checks_and_fired_schedules() {
        let schedule = |at: &str, key: &str| {
            let target = json!({"Arn": "arn", "RoleArn": "role", "Input": json!({key: {}}).to_string()});
            json!({"ScheduleExpression": format!("at({at})"), "Target": target}).to_string()
        };
        let times = scheduled_for(&[
            ("M-1", 200, schedule("2026-12-24T02:30:00", "spillway-continuation")),
            ("M-1.0", 200, schedule("2026-12-24T03:00:00", "spillway-undo-check")),
            ("M-2", 404, json_error("ResourceNotFoundException")),
        ])
        .await;
        assert_eq!(times.unwrap(), [at("2026-12-24T02:30:00Z")]);
        let denied = scheduled_for(&[("M-1", 403, json_error("AccessDeniedException"))]).await;
        assert_eq!(denied.unwrap_err().error_type(), "AwsDenied");
    }

    #[tokio::test(start_paused = true)]
    async fn schedule_retries_an_hour_then_uses_the_failure_queue() {
        let notice = test_support::notice(Kind::Spot, Deadline::Open);
        let scheduled = call(format!("POST /schedules/{}", name("spot interruption"))).with("failures");
        let scheduled = scheduled.with(r#""MaximumEventAgeInSeconds":3600"#).with(r#""MaximumRetryAttempts":185"#);
        let context = TestContext::new(&[], [], [scheduled.says(200, json!({"ScheduleArn": "arn"}))]);
        let (at, end) = (Timestamp::UNIX_EPOCH, Instant::now() + Duration::from_secs(1));
        let later = Later::At(at, ScheduleName::of(&notice));
        context.send("{}", later, Clock::starting_at(at), end).await.unwrap();
    }
}

//! Whether Lambda fetches drains that can wait from their queue: by an event source mapping, which anybody may have disabled.

use spillway_drainer::aws::itself::{MAPPINGS, Mapping};
use spillway_drainer::aws::{self, CallError, Itself};
use spillway_settings::Settings;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, PUT_BACK, Severity, quoted};

const ID: CheckId = CheckId::PatientQueue;
/// Of a mapping that fetches, or is about to.
const FETCHES: [&str; 4] = ["Creating", "Enabling", "Enabled", "Updating"];

/// The check. Lambda is asked until `end`.
pub(super) async fn look(settings: &Settings, itself: &Itself, region: &str, end: Instant) -> Check {
    let Some(url) = &settings.patient_queue else {
        return Check::skipped(ID, "without PatientSlots drains that can wait begin at once");
    };
    check(&aws::until(MAPPINGS, asked_until(end), || itself.mappings()).await, url, region)
}

fn check(mappings: &Result<Vec<Mapping>, CallError>, url: &str, region: &str) -> Check {
    let queue = url.rsplit('/').next().unwrap_or(url);
    let not_fetched = |what: String| {
        Finding::new(FindingId::QueueNotFetched, Severity::Fail, format!("queue {queue}"), what, PUT_BACK)
    };
    let finding = match mappings {
        Err(error) => {
            let what = format!("nobody knows whether drains that can wait begin: {}", chain(error));
            let to_do = "give the role the right if that was denied; else ask again later";
            Some(Finding::new(FindingId::MappingsUnknown, Severity::Unknown, MAPPINGS, what, to_do))
        }
        Ok(mappings) => match mappings.iter().find(|mapping| mapping.source.ends_with(&format!(":{queue}"))) {
            None => Some(not_fetched("has no event source mapping: its drains never begin".to_owned())),
            Some(Mapping { state, .. }) if FETCHES.contains(&state.as_str()) => None,
            Some(Mapping { id, state, .. }) => {
                let what = format!("has an event source mapping that is {state}: its drains do not begin");
                let id = quoted(id);
                let enable = format!("aws lambda update-event-source-mapping --uuid {id} --enabled --region {region}");
                Some(Finding { to_do: "enable it".to_owned(), ..not_fetched(what) }.with_command(enable))
            }
        },
    };
    let what = match finding {
        None => "Lambda fetches drains that can wait from their queue",
        Some(_) => "drains that can wait may not begin",
    };
    Check::made(ID, what, finding.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://sqs.us-east-1.amazonaws.com/123456789012/patient";

    fn found(source: &str, state: &str) -> Vec<(FindingId, Option<String>)> {
        let source = format!("arn:aws:sqs:us-east-1:123456789012:{source}");
        let mappings = vec![Mapping { id: "a-1".to_owned(), source, state: state.to_owned() }];
        let findings = check(&Ok(mappings), URL, "us-east-1").findings;
        findings.into_iter().map(|finding| (finding.id, finding.command)).collect()
    }

    #[test]
    fn a_queue_that_nobody_fetches_from_is_found_with_the_command_that_enables_its_mapping() {
        for state in FETCHES {
            assert_eq!(found("patient", state), []);
        }
        let command = "aws lambda update-event-source-mapping --uuid a-1 --enabled --region us-east-1".to_owned();
        for state in ["Disabled", "Disabling"] {
            assert_eq!(found("patient", state), [(FindingId::QueueNotFetched, Some(command.clone()))]);
        }
        assert_eq!(found("not-patient", "Enabled"), [(FindingId::QueueNotFetched, None)]);
    }
}

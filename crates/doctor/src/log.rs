//! The report as one wide line of the log.

use jiff::Timestamp;
use serde::Serialize;

use crate::report::{CheckStatus, SelfTestReport};

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Line<'a> {
    timestamp: Timestamp,
    level: &'static str,
    message: String,
    #[serde(flatten)]
    report: &'a SelfTestReport,
}

/// The line. It has the timestamp and the level that Lambda needs to filter by level.
pub(crate) fn line(report: &SelfTestReport, now: Timestamp) -> String {
    let level = match report.status {
        CheckStatus::Ok | CheckStatus::Skipped => "INFO",
        CheckStatus::Warn | CheckStatus::Unknown => "WARN",
        CheckStatus::Fail => "ERROR",
    };
    let line = Line { timestamp: now, level, message: format!("self-test: {}", report.summary), report };
    serde_json::to_string(&line).expect("a report is plain data with string keys")
}

#[cfg(test)]
mod tests {

    use spillway_receipt::schema;

    use super::Line;

    #[test]
    fn the_schema_in_the_documents_is_that_of_the_types() {
        schema::is_documented::<Line<'_>>("self-test.schema.json", "Spillway's self-test, as a line of the log");
    }
}

//! Report of a self-test: checks with their findings. Pure.

use std::cmp::Reverse;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use spillway_core::clock::Clock;
use spillway_core::cluster::ClusterName;
use spillway_drainer::aws::CallError;
use spillway_receipt::LONGEST_LINE;
use spillway_startup::logs::chain;

use crate::catalogue::{CheckId, FindingId};

/// Version of the report format, raised if a field is renamed or changes its meaning.
const VERSION: u32 = 2;

const FINDINGS_OF_A_CHECK: usize = 30;
const NODES_OF_A_FINDING: usize = 20;
/// Maximum size of a check in one log line. 8 KiB are reserved for the other fields of the line.
const MOST_BYTES_OF_A_PART: usize = LONGEST_LINE - 8 * 1024;

/// Remedy for a stack that was changed by hand. Deploying the same template again does not revert the change.
pub(crate) const REVERT_DRIFT: &str =
    "revert the manual change by a drift-aware change set (docs/troubleshooting.md, what was changed by hand)";

/// Report of one self-test.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SelfTestReport {
    #[serde(rename = "self_test")]
    version: u32,
    /// Version of the function that wrote the report.
    #[serde(rename = "version")]
    release: &'static str,
    /// Lambda's request id.
    request_id: String,
    /// Start of the self-test.
    time: Timestamp,
    /// Duration of the self-test.
    took_ms: i64,
    /// Status of the worst check.
    pub(super) status: CheckStatus,
    /// Result of all checks in one sentence.
    pub(super) summary: String,
    /// List of checks with findings. Last field, because CloudWatch Logs Insights reads only the first 200 fields of a line.
    pub(super) checks: Vec<Check>,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Check {
    /// Stable name in kebab-case.
    #[cfg_attr(test, schemars(with = "String"))]
    pub(crate) id: CheckId,
    /// Name of the checked cluster; absent for a check of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    pub(crate) status: CheckStatus,
    /// Result in one sentence, or the reason why the check was skipped.
    pub(crate) what: String,
    /// Findings, worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<Finding>,
    /// First fifty nodes that could not be drained in two minutes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<HeldUpNode>,
    /// Number of findings that the report leaves out.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) findings_cut: usize,
}

/// Fault or information that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Finding {
    /// Stable name in kebab-case.
    #[cfg_attr(test, schemars(with = "String"))]
    pub(crate) id: FindingId,
    pub(crate) severity: Severity,
    /// Object of the finding: `PodDisruptionBudget shop/web`, `rule spillway-Spot`.
    pub(crate) object: String,
    /// Fault and its effect.
    pub(crate) what: String,
    /// Remedy.
    pub(crate) to_do: String,
    /// Command that applies the remedy or shows details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// First twenty affected nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<String>,
    /// Number of affected nodes.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) nodes_count: usize,
}

/// Node that could not be drained in two minutes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HeldUpNode {
    pub(crate) node: String,
    /// Objects that prevent the drain of the node.
    pub(crate) because: Vec<String>,
}

/// Status of a check or report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Status"))]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckStatus {
    /// No fault found.
    Ok,
    /// The settings do not require the check, or an earlier check failed.
    Skipped,
    /// A drain would work, but not as well as possible.
    Warn,
    /// The check is incomplete.
    Unknown,
    /// A drain would fail, or pods would be lost.
    Fail,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Information, not a fault.
    Info,
    /// A drain would work, but not as well as possible.
    Warn,
    /// The object could not be checked.
    Unknown,
    /// A drain would fail, or pods would be lost.
    Fail,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Finding {
    pub(crate) fn new(
        id: FindingId,
        severity: Severity,
        object: impl fmt::Display,
        what: impl fmt::Display,
        to_do: impl fmt::Display,
    ) -> Self {
        Self {
            id,
            severity,
            object: object.to_string(),
            what: what.to_string(),
            to_do: to_do.to_string(),
            command: None,
            nodes: Vec::new(),
            nodes_count: 0,
        }
    }

    pub(crate) fn on(self, nodes: impl ExactSizeIterator<Item: fmt::Display>) -> Self {
        let nodes_count = nodes.len();
        Self { nodes: nodes.take(NODES_OF_A_FINDING).map(|node| node.to_string()).collect(), nodes_count, ..self }
    }

    /// Adds a command. Leaves out a command with control characters, because a terminal would not show them.
    pub(crate) fn with_command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()).filter(|command| !command.chars().any(char::is_control)), ..self }
    }
}

/// Quotes an untrusted value as one word of a shell command.
pub(crate) fn quoted(value: impl fmt::Display) -> String {
    let value = value.to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value;
    }
    format!("'{}'", value.replace('\'', r#"'"'"'"#))
}

impl Check {
    /// Creates a check with its findings. The worst finding decides the status.
    pub(crate) fn made(id: CheckId, what: impl fmt::Display, mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| Reverse(finding.severity));
        let status = match findings.first().map(|finding| finding.severity) {
            None | Some(Severity::Info) => CheckStatus::Ok,
            Some(Severity::Warn) => CheckStatus::Warn,
            Some(Severity::Unknown) => CheckStatus::Unknown,
            Some(Severity::Fail) => CheckStatus::Fail,
        };
        let findings_cut = findings.len().saturating_sub(FINDINGS_OF_A_CHECK);
        findings.truncate(FINDINGS_OF_A_CHECK);
        Self { id, cluster: None, status, what: what.to_string(), findings, nodes: Vec::new(), findings_cut }
    }

    pub(crate) fn unknown(id: CheckId, why: impl fmt::Display) -> Self {
        Self { status: CheckStatus::Unknown, ..Self::made(id, why, Vec::new()) }
    }

    pub(crate) fn not_answered(id: CheckId, finding: FindingId, error: &CallError, what: &str) -> Self {
        let what = format!("{what}: {}", chain(error));
        let to_do = format!("run the doctor again; if a permission is missing, {REVERT_DRIFT}");
        Self::made(id, &what, vec![Finding::new(finding, Severity::Unknown, error.action, &what, to_do)])
    }

    pub(crate) fn skipped(id: CheckId, why: impl fmt::Display) -> Self {
        Self { status: CheckStatus::Skipped, ..Self::made(id, why, Vec::new()) }
    }

    pub(crate) fn with_nodes(self, nodes: Vec<HeldUpNode>) -> Self {
        Self { nodes, ..self }
    }

    /// Splits the check into parts that fit into log lines.
    pub(crate) fn in_parts(&self) -> Vec<Self> {
        let mut parts = vec![Self { findings: Vec::new(), nodes: Vec::new(), ..self.clone() }];
        for finding in &self.findings {
            last_with_room_for(&mut parts, finding).findings.push(finding.clone());
        }
        for node in &self.nodes {
            last_with_room_for(&mut parts, node).nodes.push(node.clone());
        }
        parts
    }

    pub(crate) fn of(self, cluster: &ClusterName) -> Self {
        Self { cluster: Some(cluster.to_string()), ..self }
    }
}

/// Returns a part with room for `more`: the last part, or a new part.
fn last_with_room_for<'a>(parts: &'a mut Vec<Check>, more: &impl Serialize) -> &'a mut Check {
    let last = parts.last().expect("at least one part");
    if json_bytes(last) + json_bytes(more) > MOST_BYTES_OF_A_PART {
        parts.push(Check { findings: Vec::new(), nodes: Vec::new(), ..last.clone() });
    }
    parts.last_mut().expect("at least one part")
}

fn json_bytes(part: &impl Serialize) -> usize {
    serde_json::to_string(part).expect("a report is plain data with string keys").len()
}

impl SelfTestReport {
    pub(super) fn of_one(&self, check: Check) -> Self {
        Self { request_id: self.request_id.clone(), summary: self.summary.clone(), checks: vec![check], ..*self }
    }

    pub(super) fn new(request_id: &str, clock: Clock, checks: Vec<Check>) -> Self {
        let any = |status| checks.iter().any(|check| check.status == status);
        let worst =
            [CheckStatus::Fail, CheckStatus::Unknown, CheckStatus::Warn].into_iter().find(|status| any(*status));
        let status = worst.unwrap_or(CheckStatus::Ok);
        let took = clock.now().duration_since(clock.started());
        let mut report = Self {
            version: VERSION,
            release: env!("CARGO_PKG_VERSION"),
            request_id: request_id.to_owned(),
            time: clock.started(),
            took_ms: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
            status,
            summary: String::new(),
            checks,
        };
        report.summary = report.sentence();
        report
    }

    pub(super) fn count(&self, severity: Severity) -> usize {
        self.checks.iter().flat_map(|check| &check.findings).filter(|finding| finding.severity == severity).count()
    }

    fn sentence(&self) -> String {
        let verdict = match self.status {
            CheckStatus::Fail => "the next notice may fail",
            CheckStatus::Unknown => "the next notice may fail: some checks are incomplete",
            CheckStatus::Warn => "the next notice would be handled, but not as well as possible",
            CheckStatus::Ok | CheckStatus::Skipped => "the next notice would be handled",
        };
        let count = |status, what: &str| match self.checks.iter().filter(|check| check.status == status).count() {
            0 => String::new(),
            count => format!(", {count} {what}"),
        };
        let (unknown, skipped) = (count(CheckStatus::Unknown, "incomplete"), count(CheckStatus::Skipped, "skipped"));
        let checks = counted(self.checks.len(), "check");
        let failures = counted(self.count(Severity::Fail), "failure");
        let warnings = counted(self.count(Severity::Warn), "warning");
        format!("{verdict} ({checks}{unknown}{skipped}, {failures}, {warnings})")
    }
}

/// Formats a count with a noun: "1 node", "2 nodes".
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
pub(crate) mod tests;

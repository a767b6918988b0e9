//! What the doctor says: each thing looked at is a check, and what is wrong there are its findings. Pure.
//!
//! The ids are stable: alarms, scripts and tests know checks and findings by them.

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

/// The version of this document. It changes when a field is renamed or changes its meaning.
const VERSION: u32 = 2;

/// How many findings of one check the report has room for: more are for nobody to read.
const FINDINGS_OF_A_CHECK: usize = 30;
/// How many nodes one finding names, for the same reason.
const NODES_OF_A_FINDING: usize = 20;
/// How long a check may be in one line of the log, beside its sentence once more and the report's other fields.
const MOST_BYTES_OF_A_PART: usize = LONGEST_LINE - 8 * 1024;

/// What to do when the stack is not as its template has it: a deployment of the same template changes nothing.
pub(crate) const PUT_BACK: &str =
    "a drift-aware change set puts back what was changed by hand: docs/troubleshooting.md has its commands";

/// Everything that one self-test found.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SelfTestReport {
    #[serde(rename = "self_test")]
    version: u32,
    /// Version of the function that wrote the report.
    #[serde(rename = "version")]
    release: &'static str,
    /// Lambda's id of the invocation.
    request_id: String,
    /// When it began.
    time: Timestamp,
    /// How long it took.
    took_ms: i64,
    /// The worst of its checks.
    pub(super) status: CheckStatus,
    /// The report in a sentence.
    pub(super) summary: String,
    /// Last, because CloudWatch Logs Insights reads the first 200 fields of a line.
    pub(super) checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Check {
    /// Its name, in kebab-case. Stable.
    #[cfg_attr(test, schemars(with = "String"))]
    pub(crate) id: CheckId,
    /// The cluster that it is about; absent when it is about the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    pub(crate) status: CheckStatus,
    /// What was looked at and how it is, in a sentence; why it was not, if it was skipped.
    pub(crate) what: String,
    /// What is wrong there, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<Finding>,
    /// The nodes that could not be drained in two minutes, if it is about nodes: the first fifty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<HeldUpNode>,
    /// How many findings more there are than there was room for.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) findings_cut: usize,
}

/// One thing that is wrong, or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Finding {
    /// Its name, in kebab-case. Stable.
    #[cfg_attr(test, schemars(with = "String"))]
    pub(crate) id: FindingId,
    pub(crate) severity: Severity,
    /// What it is about: `PodDisruptionBudget shop/web`, `rule spillway-Spot`.
    pub(crate) object: String,
    /// What is so, and what follows from it.
    pub(crate) what: String,
    /// What to do about it, in words.
    pub(crate) to_do: String,
    /// A command that does it, or that shows more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// The nodes that it concerns; the first twenty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<String>,
    /// How many nodes it concerns.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) nodes_count: usize,
}

/// A node that could not be drained in two minutes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HeldUpNode {
    pub(crate) node: String,
    /// The objects of the findings that hold it up.
    pub(crate) because: Vec<String>,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Status"))]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckStatus {
    /// As it should be.
    Ok,
    /// It was not looked at: the settings do not want it, or what it stands on failed.
    Skipped,
    /// Drains work, and not as well as they could.
    Warn,
    /// It could not be looked at, or not at all of it: nobody knows.
    Unknown,
    /// A drain would fail, or pods would be lost.
    Fail,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Worth knowing; nothing is wrong.
    Info,
    /// Drains work, and not as well as they could.
    Warn,
    /// It could not be looked at: nobody knows.
    Unknown,
    /// A drain would fail, or pods would be lost.
    Fail,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Finding {
    /// A finding about an object: what is so, and what to do about it.
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

    /// The finding as one about these nodes.
    pub(crate) fn on(self, nodes: impl ExactSizeIterator<Item: fmt::Display>) -> Self {
        let nodes_count = nodes.len();
        Self { nodes: nodes.take(NODES_OF_A_FINDING).map(|node| node.to_string()).collect(), nodes_count, ..self }
    }

    /// The finding with a command that does what is to be done; without, if a terminal would not show it as it is.
    pub(crate) fn with_command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()).filter(|command| !command.chars().any(char::is_control)), ..self }
    }
}

/// A value as one word of a shell, whatever stands in it: names in commands to copy are other people's.
pub(crate) fn quoted(value: impl fmt::Display) -> String {
    let value = value.to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value;
    }
    format!("'{}'", value.replace('\'', r#"'"'"'"#))
}

impl Check {
    /// A check that was made. Its status is that of the worst finding.
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

    /// A check that failed to be made, and why.
    pub(crate) fn unknown(id: CheckId, why: impl fmt::Display) -> Self {
        Self { status: CheckStatus::Unknown, ..Self::made(id, why, Vec::new()) }
    }

    /// A check that AWS did not answer: `what` is not known.
    pub(crate) fn not_answered(id: CheckId, finding: FindingId, error: &CallError, what: &str) -> Self {
        let what = format!("{what}: {}", chain(error));
        Self::made(id, &what, vec![Finding::new(finding, Severity::Unknown, error.action, &what, PUT_BACK)])
    }

    /// A check that was not to be made, and why.
    pub(crate) fn skipped(id: CheckId, why: impl fmt::Display) -> Self {
        Self { status: CheckStatus::Skipped, ..Self::made(id, why, Vec::new()) }
    }

    /// The check with the nodes that are held up.
    pub(crate) fn with_nodes(self, nodes: Vec<HeldUpNode>) -> Self {
        Self { nodes, ..self }
    }

    /// The check in parts that a line of the log has room for each: with so many of its findings and nodes.
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

    /// The check as one of a cluster's.
    pub(crate) fn of(self, cluster: &ClusterName) -> Self {
        Self { cluster: Some(cluster.to_string()), ..self }
    }
}

/// The last of a check's parts, or a new one if that has no room for one thing more.
fn last_with_room_for<'a>(parts: &'a mut Vec<Check>, more: &impl Serialize) -> &'a mut Check {
    let last = parts.last().expect("a check has one part at least");
    if json_bytes(last) + json_bytes(more) > MOST_BYTES_OF_A_PART {
        parts.push(Check { findings: Vec::new(), nodes: Vec::new(), ..last.clone() });
    }
    parts.last_mut().expect("a check has one part at least")
}

fn json_bytes(part: &impl Serialize) -> usize {
    serde_json::to_string(part).expect("a report is plain data with string keys").len()
}

impl SelfTestReport {
    /// The report with one check alone.
    pub(super) fn of_one(&self, check: Check) -> Self {
        Self { request_id: self.request_id.clone(), summary: self.summary.clone(), checks: vec![check], ..*self }
    }

    /// The report of these checks, which are all made by now.
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
        report.summary = report.in_a_sentence();
        report
    }

    /// How many findings of that severity there are.
    pub(super) fn count(&self, severity: Severity) -> usize {
        self.checks.iter().flat_map(|check| &check.findings).filter(|finding| finding.severity == severity).count()
    }

    fn in_a_sentence(&self) -> String {
        let verdict = match self.status {
            CheckStatus::Fail => "the next notice may well go wrong",
            CheckStatus::Unknown => "nobody knows whether the next notice would be handled",
            CheckStatus::Warn => "the next notice would be handled, and not as well as it could",
            CheckStatus::Ok | CheckStatus::Skipped => "the next notice would be handled",
        };
        let of_them = |status, what: &str| match self.checks.iter().filter(|check| check.status == status).count() {
            0 => String::new(),
            count => format!(", {count} of them {what}"),
        };
        let (unknown, skipped) =
            (of_them(CheckStatus::Unknown, "could not be made in full"), of_them(CheckStatus::Skipped, "not made"));
        let checks = counted(self.checks.len(), "check");
        let failures = counted(self.count(Severity::Fail), "failure");
        let warnings = counted(self.count(Severity::Warn), "warning");
        format!("{verdict}: {checks}{unknown}{skipped}, {failures}, {warnings}")
    }
}

/// So many of them, in the singular or the plural.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;

//! Writes a receipt as one log line, or as several log lines if the receipt has many pods.

use std::iter;

use jiff::Timestamp;
use serde::Serialize;

use crate::{Document, Ending, NoticeRecord, Pod, Receipt};

/// Maximum bytes of a log line, because Lambda may split a line of more than 64 KiB.
pub const LONGEST_LINE: usize = 60 * 1024;

/// Additional log line of a receipt, with pods that did not fit into the previous lines.
#[derive(Debug, Serialize)]
struct MorePods<'a> {
    timestamp: Timestamp,
    level: &'static str,
    message: String,
    /// Number of this line among the receipt's log lines. The first line has no number.
    receipt_part: usize,
    request_id: &'a str,
    notice: &'a NoticeRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<Ending>,
    pods: &'a [Pod],
}

/// Returns the log lines of a receipt. The first line has the fields and the first pods; the other lines have more pods.
#[must_use]
pub fn lines(receipt: &Receipt, now: Timestamp) -> Vec<String> {
    let whole = Document::of(receipt, now, None);
    let line = whole.json();
    if line.len() <= LONGEST_LINE {
        return vec![line];
    }
    let of_pods: usize = receipt.pods.iter().map(json_bytes).sum();
    let (first, rest) = receipt.pods.split_at(fitting(&receipt.pods, line.len() - of_pods));
    let mut others = Vec::new();
    let mut left = rest;
    while !left.is_empty() {
        let without_pods = part(receipt, others.len(), &[], now).len();
        let (part, after) = left.split_at(fitting(left, without_pods).max(1));
        others.push(part);
        left = after;
    }
    let first = Receipt { pods: first.to_vec(), ..receipt.clone() };
    let first = Document { receipt_parts: Some(1 + others.len()), ..Document::of(&first, now, None) }.json();
    let others = others.iter().enumerate().map(|(before, pods)| part(receipt, before, pods, now));
    iter::once(first).chain(others).collect()
}

/// Returns the number of pods that fit into a log line beside `other_bytes` of other fields.
fn fitting(pods: &[Pod], other_bytes: usize) -> usize {
    let mut room = (LONGEST_LINE - PARTS).saturating_sub(other_bytes);
    let fits = |pod: &&Pod| {
        let left = room.checked_sub(json_bytes(pod));
        room = left.unwrap_or_default();
        left.is_some()
    };
    pods.iter().take_while(fits).count()
}

/// Maximum bytes of the field `receipt_parts`, whose value has up to seven digits.
const PARTS: usize = 24;

/// Returns the number of bytes of a pod's JSON and a comma.
fn json_bytes(pod: &Pod) -> usize {
    serde_json::to_string(pod).expect("pods in a receipt are plain data").len() + ",".len()
}

fn part(receipt: &Receipt, before: usize, pods: &[Pod], now: Timestamp) -> String {
    let receipt_part = before + 2;
    let part = MorePods {
        timestamp: now,
        level: "INFO",
        message: format!("part {receipt_part} of a receipt: more of its pods"),
        receipt_part,
        request_id: &receipt.request_id,
        notice: &receipt.notice,
        instance: receipt.instance.as_deref(),
        cluster: receipt.cluster.as_deref(),
        node: receipt.node.as_deref(),
        ending: receipt.ending,
        pods,
    };
    serde_json::to_string(&part).expect("a receipt is plain data with string keys")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{Fate, PodRecord};

    fn receipt(pods: usize, name_length: usize) -> Receipt {
        let name = |n: usize| format!("shop/{n:0>name_length$}");
        let pods = (0..pods).map(|n| Pod::Full(PodRecord::sample(&name(n), Fate::Clean, 0)));
        Receipt {
            request_id: "r-1".to_owned(),
            node: Some("n-1".to_owned()),
            ending: Some(Ending::Drained),
            pods: pods.collect(),
            ..Receipt::default()
        }
    }

    fn read(receipt: &Receipt) -> Vec<Value> {
        let lines = lines(receipt, Timestamp::UNIX_EPOCH);
        assert!(lines.iter().all(|line| line.len() <= LONGEST_LINE), "{:?}", lines.iter().map(String::len));
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn short_receipt_is_one_line() {
        let [line] = read(&receipt(50, 20)).try_into().expect("one");
        assert_eq!((line["pods"].as_array().unwrap().len(), line.get("receipt_parts")), (50, None));
    }

    #[test]
    fn parts_name_their_receipt_and_number() {
        let lines = read(&receipt(1_000, 60));
        assert_eq!(lines[0]["receipt_parts"], lines.len());
        assert!(lines.iter().skip(1).all(|line| line.get("receipt").is_none()), "one receipt");
        for (at, line) in lines.iter().enumerate().skip(1) {
            assert_eq!((&line["receipt_part"], &line["request_id"]), (&(at + 1).into(), &"r-1".into()));
            assert_eq!((&line["node"], &line["ending"]), (&"n-1".into(), &"drained".into()));
        }
    }

    #[test]
    fn parts_hold_each_pod_once() {
        for (pods, name_length) in [(0, 1), (1, 250), (700, 40), (1_500, 1), (1_500, 250)] {
            let receipt = receipt(pods, name_length);
            // A receipt without pods has no list of them.
            let pods_of = |line: &Value| line["pods"].as_array().cloned().unwrap_or_default();
            let read: Vec<_> = read(&receipt).iter().flat_map(pods_of).collect();
            assert_eq!(Value::Array(read), serde_json::to_value(&receipt.pods).unwrap());
        }
    }
}

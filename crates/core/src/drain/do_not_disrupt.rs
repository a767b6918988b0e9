//! Reads the annotations that protect a pod from disruption. Pure.
//!
//! Three annotations count: `karpenter.sh/do-not-disrupt`, `cluster-autoscaler.kubernetes.io/safe-to-evict=false` and
//! `spillway/drain=wait`.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::kube::metadata::annotation::{DO_NOT_DISRUPT, DRAIN, SAFE_TO_EVICT};
use crate::kube::pod::Pod;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoNotDisrupt {
    annotation: &'static str,
    value: String,
    /// Time at which the annotation expires. `None`: no expiry is known.
    pub until: Option<Timestamp>,
}

impl fmt::Display for DoNotDisrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its annotation {}={}", self.annotation, self.value)
    }
}

/// Reads the pod's do-not-disrupt annotations. If there are several, returns the one that lasts longest.
pub fn do_not_disrupt(pod: &Pod) -> Option<DoNotDisrupt> {
    let annotations = pod.metadata.annotations.as_ref()?;
    let by = |annotation, until| {
        annotations.get(annotation).map(|value: &String| DoNotDisrupt { annotation, value: value.clone(), until })
    };
    let value = |annotation| annotations.get(annotation).map(String::as_str);
    match (value(DRAIN), value(SAFE_TO_EVICT), value(DO_NOT_DISRUPT)) {
        (Some("wait"), ..) => by(DRAIN, None),
        (_, Some("false"), _) => by(SAFE_TO_EVICT, None),
        (.., Some("true")) => by(DO_NOT_DISRUPT, None),
        (.., Some(text)) => by(DO_NOT_DISRUPT, ends(pod, duration(text)?)),
        (.., None) => None,
    }
}

/// Adds the annotation's duration to the pod's start time. `None`: the pod has not started.
fn ends(pod: &Pod, lasts: Duration) -> Option<Timestamp> {
    let started = pod.status.start_time.as_ref()?.0;
    let lasts = SignedDuration::try_from(lasts).unwrap_or(SignedDuration::MAX);
    Some(started.saturating_add(lasts).unwrap_or(Timestamp::MAX))
}

/// Parses a duration in Go's format, such as `1h30m` or `1.5h`. `None`: the text is not a duration, or the duration is negative.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut sum = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number_ends = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(number_ends);
        let unit_ends = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_ends);
        let seconds = number.parse::<f64>().ok()? * seconds_of(unit)?;
        sum = sum.saturating_add(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        rest = tail;
    }
    Some(sum)
}

fn seconds_of(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1e-9),
        // Go accepts both of Unicode's signs for micro.
        "us" | "\u{b5}s" | "\u{3bc}s" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const STARTED: &str = "2026-11-21T03:00:00Z";

    fn read(annotations: &Value) -> Option<DoNotDisrupt> {
        let pod = json!({"metadata": {"name": "w", "annotations": annotations}, "status": {"startTime": STARTED}});
        do_not_disrupt(&serde_json::from_value(pod).unwrap())
    }

    fn until(annotations: &Value) -> Option<String> {
        read(annotations).unwrap().until.map(|until| until.to_string())
    }

    #[test]
    fn each_of_three_annotations_counts() {
        assert_eq!(read(&json!({})), None);
        let karpenter = read(&json!({DO_NOT_DISRUPT: "true"})).unwrap();
        assert_eq!(karpenter.to_string(), "its annotation karpenter.sh/do-not-disrupt=true");
        assert_eq!(karpenter.until, None);
        let autoscaler = read(&json!({SAFE_TO_EVICT: "false"})).unwrap();
        assert_eq!(autoscaler.to_string(), "its annotation cluster-autoscaler.kubernetes.io/safe-to-evict=false");
        let ours = read(&json!({DRAIN: "wait", DO_NOT_DISRUPT: "1s"})).unwrap();
        assert_eq!((ours.to_string().as_str(), ours.until), ("its annotation spillway/drain=wait", None));
    }

    #[test]
    fn other_values_of_the_annotations_do_not_count() {
        for annotations in [
            json!({DO_NOT_DISRUPT: "false"}),
            json!({DO_NOT_DISRUPT: "True"}),
            json!({DO_NOT_DISRUPT: ""}),
            json!({DO_NOT_DISRUPT: "-5m"}),
            json!({SAFE_TO_EVICT: "true"}),
            json!({SAFE_TO_EVICT: "False"}),
            json!({DRAIN: "last"}),
        ] {
            assert_eq!(read(&annotations), None, "{annotations}");
        }
    }

    #[test]
    fn duration_counts_from_the_pods_start() {
        assert_eq!(until(&json!({DO_NOT_DISRUPT: "30m"})), Some("2026-11-21T03:30:00Z".to_owned()));
        let pod = json!({"metadata": {"name": "w", "annotations": {DO_NOT_DISRUPT: "30m"}}});
        let not_started = do_not_disrupt(&serde_json::from_value(pod).unwrap()).unwrap();
        assert_eq!(not_started.until, None);
    }

    #[test]
    fn longest_annotation_counts() {
        assert_eq!(until(&json!({DO_NOT_DISRUPT: "1s", SAFE_TO_EVICT: "false"})), None);
        assert_eq!(
            until(&json!({DO_NOT_DISRUPT: "1h", SAFE_TO_EVICT: "true"})),
            Some("2026-11-21T04:00:00Z".to_owned())
        );
    }

    #[test]
    fn durations_are_parsed_like_gos() {
        let seconds = |text: &str| duration(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("30m"), Some(1800.0));
        assert_eq!(seconds("1h30m0.5s"), Some(5400.5));
        assert_eq!(seconds("1.5h"), Some(5400.0));
        assert_eq!(seconds("+.5s"), Some(0.5));
        assert_eq!(seconds("1500ms"), Some(1.5));
        assert_eq!(seconds("2000000000ns"), Some(2.0));
        assert_eq!(seconds("2000\u{b5}s"), Some(0.002));
        for text in ["", "30", "m", "1d", "1h 30m", "1e3s", "inf", "1..5s", "NaNs", "-1s", "+"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(duration("99999999999999999999999h"), Some(Duration::MAX));
    }
}

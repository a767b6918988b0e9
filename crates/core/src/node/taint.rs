//! Taints that Spillway adds to nodes. Pure.

use k8s_openapi::api::core::v1::Taint;
use spillway_notice::Kind;
use spillway_settings::TaintNames;

/// Effect that only keeps new pods away. `NoExecute` would evict pods despite their PDBs.
const EFFECT: &str = "NoSchedule";
/// Maximum length of a taint's value in Kubernetes. A longer event id is cut.
const LONGEST_VALUE: usize = 63;

/// Returns the taint for a kind of notice; `None` if `names` is `Nth` and aws-node-termination-handler has no taint for `kind`.
pub fn for_notice(kind: Kind, event: &str, names: TaintNames) -> Option<Taint> {
    let key = match names {
        TaintNames::Spillway => format!("spillway/{}", kind.as_str().replace(' ', "-")),
        TaintNames::Nth => format!("aws-node-termination-handler/{}", of_nth(kind)?),
    };
    Some(Taint {
        key,
        value: Some(value(event)).filter(|value| !value.is_empty()),
        effect: EFFECT.to_owned(),
        time_added: None,
    })
}

/// Returns the taint that makes Kubernetes delete pods and detach volumes at once. The value marks the taint as Spillway's.
pub fn out_of_service() -> Taint {
    Taint {
        key: "node.kubernetes.io/out-of-service".to_owned(),
        value: Some("spillway".to_owned()),
        effect: "NoExecute".to_owned(),
        time_added: None,
    }
}

/// Key of the taint that marks a node until its drain for planned maintenance begins.
pub const PLANNED: &str = "spillway/planned";

/// Returns the taint of a node whose planned drain has not begun. The scheduler prefers other nodes for new pods.
pub fn planned(event: &str) -> Taint {
    Taint {
        key: PLANNED.to_owned(),
        value: Some(value(event)).filter(|value| !value.is_empty()),
        effect: "PreferNoSchedule".to_owned(),
        time_added: None,
    }
}

/// Returns the name of the taint in aws-node-termination-handler (`pkg/node/node.go`).
fn of_nth(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Spot => Some("spot-itn"),
        Kind::Rebalance => Some("rebalance-recommendation"),
        Kind::Maintenance => Some("scheduled-maintenance"),
        Kind::Terminate | Kind::ReturnToWarmPool | Kind::ReplaceRootVolume => Some("asg-lifecycle-termination"),
        _ => None,
    }
}

/// Returns the event id as a valid taint value: letters, digits and `-_.`, with a letter or a digit at each end.
fn value(event: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let text: String = event.chars().map(legal).take(LONGEST_VALUE).collect();
    text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

/// Returns the text of a taint as kubectl writes it: `key=value:effect`.
pub fn text(taint: &Taint) -> String {
    match &taint.value {
        Some(value) => format!("{}={value}:{}", taint.key, taint.effect),
        None => format!("{}:{}", taint.key, taint.effect),
    }
}

/// Returns `true` if no taint in `taints` has the same key and effect.
pub fn fits(taint: &Taint, taints: &[Taint]) -> bool {
    !taints.iter().any(|other| (&other.key, &other.effect) == (&taint.key, &taint.effect))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(kind: Kind, event: &str, names: TaintNames) -> Option<String> {
        for_notice(kind, event, names).as_ref().map(text)
    }

    #[test]
    fn each_kind_has_our_taint() {
        for kind in Kind::ALL {
            let tainted = taint(kind, "e-1", TaintNames::Spillway).unwrap_or_default();
            assert!(tainted.starts_with("spillway/") && tainted.ends_with("=e-1:NoSchedule"), "{tainted}");
        }
        let spot = taint(Kind::Spot, "e-1", TaintNames::Spillway);
        assert_eq!(spot.as_deref(), Some("spillway/spot-interruption=e-1:NoSchedule"));
    }

    #[test]
    fn nth_taints_keep_nths_names() {
        let tainted = |kind| taint(kind, "e-1", TaintNames::Nth);
        let named = |name: &str| Some(format!("aws-node-termination-handler/{name}=e-1:NoSchedule"));
        assert_eq!(tainted(Kind::Spot), named("spot-itn"));
        assert_eq!(tainted(Kind::Rebalance), named("rebalance-recommendation"));
        assert_eq!(tainted(Kind::Maintenance), named("scheduled-maintenance"));
        assert_eq!(tainted(Kind::Terminate), named("asg-lifecycle-termination"));
        assert_eq!(tainted(Kind::Stopping), None);
    }

    #[test]
    fn event_id_becomes_a_legal_value() {
        assert_eq!(value("12345678-1234-1234-1234-123456789012"), "12345678-1234-1234-1234-123456789012");
        assert_eq!(value("arn:aws/health é"), "arn-aws-health");
        assert_eq!(value(&"x".repeat(100)), "x".repeat(63));
        assert_eq!(value("::"), "");
    }
}

//! What is sent.

use std::time::Duration;

use super::*;

fn name() -> PodName {
    PodName { namespace: "shop".to_owned(), name: "web-0".to_owned() }
}

#[test]
fn an_eviction_names_the_pods_uid() {
    let body = serde_json::to_string_pretty(&eviction(&name(), &PodUid("u-1".to_owned()), Grace::Own)).unwrap();
    insta::assert_snapshot!(body);
}

#[test]
fn an_eviction_carries_a_grace_only_when_it_is_clamped() {
    let clamped = Grace::Clamped(Duration::from_secs(7));
    let body = serde_json::to_string_pretty(&eviction(&name(), &PodUid("u-1".to_owned()), clamped)).unwrap();
    insta::assert_snapshot!(body);
}

#[test]
fn a_deletion_names_the_pods_uid_and_the_grace_that_is_left() {
    let clamped = Grace::Clamped(Duration::from_secs(7));
    let body = serde_json::to_string_pretty(&deletion(&PodUid("u-1".to_owned()), clamped)).unwrap();
    insta::assert_snapshot!(body);
}

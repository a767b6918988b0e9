//! Faults between the function and the API server: the drain goes on as long as there is time.

use std::time::Duration;

use spillway_bed::gateway::{Answer, Fault, Gateway, Rule, Which};
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, fates};

const SPOT: Duration = Duration::from_secs(120);

/// Drains two pods past one fault; the drain must not need a second try.
async fn drains_past(name: &str, call: &str, fault: Fault) -> Gateway {
    let stage = Stage::set(name).await;
    stage.deploy("web", 2, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new(call, Which::Nth(1), fault));

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().unwrap_or_else(|error| panic!("{call}: {error} {outcome:#?}"));
    assert_eq!((&answer["ending"], fates(answer)["clean"]), (&"drained".into(), 2), "{outcome:#?}");
    assert!(pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list").is_empty());
    assert_eq!(gateway.rules().struck(), 1, "the fault was met: {:?}", gateway.rules().calls());
    gateway
}

#[tokio::test]
async fn a_token_that_is_refused_once_is_signed_anew_and_the_claim_made_again() {
    drains_past("token-refused", "patch nodes", Fault::Answer(Answer::kubernetes(401))).await;
}

#[tokio::test]
async fn a_list_that_is_cut_short_is_asked_for_again() {
    drains_past("list-cut-short", "list pods", Fault::CutShort).await;
}

#[tokio::test]
async fn an_eviction_that_is_reset_is_asked_for_again() {
    drains_past("eviction-reset", "create pods/eviction", Fault::Reset).await;
}

#[tokio::test]
async fn a_watch_that_is_answered_with_a_page_is_begun_again() {
    drains_past("watch-page", "watch pods", Fault::NotData).await;
}

#[tokio::test]
async fn a_connection_that_is_to_be_left_is_left_and_the_drain_goes_on_over_another() {
    let gateway = drains_past("goaway", "list pods", Fault::GoAway).await;
    assert_eq!(gateway.network().connections(), 2);
}

use std::future::IntoFuture as _;

use axum::Router;
use axum::routing::get;
use reqwest::Response;
use tokio::net::TcpListener;

use super::*;
use crate::http_client;

const WHOLE: &str = "the whole answer";

/// A gateway before a server that always answers [`WHOLE`].
async fn gateway() -> Gateway {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, Router::new().route("/pods", get(async || WHOLE))).into_future());
    Gateway::start(&url, Language::Aws, None, None, Rules::default()).unwrap()
}

async fn get_pods(gateway: &Gateway) -> reqwest::Result<Response> {
    http_client::client().get(format!("{}/pods", gateway.url())).send().await
}

async fn get_pods_with(fault: Fault) -> (Gateway, reqwest::Result<Response>) {
    let gateway = gateway().await;
    gateway.rules().add(Rule::any(Which::Nth(1), fault));
    let answer = get_pods(&gateway).await;
    (gateway, answer)
}

#[tokio::test]
async fn refusal_replaces_one_answer() {
    let (gateway, answer) = get_pods_with(Fault::Answer(Answer::throttled(Some(3)))).await;
    let answer = answer.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"3".parse().unwrap()));
    assert!(get_pods(&gateway).await.unwrap().status().is_success());
}

#[tokio::test]
async fn answer_cut_short_breaks_off() {
    let (_gateway, answer) = get_pods_with(Fault::CutShort).await;
    // The head may have come; the body must not.
    let body = match answer {
        Ok(answer) => answer.text().await,
        Err(error) => Err(error),
    };
    assert!(body.is_err(), "{body:?}");
}

#[tokio::test]
async fn held_request_waits_for_its_release() {
    for side in [Side::Before, Side::After, Side::Instead] {
        let gateway = gateway().await;
        let held = Held::default();
        gateway.rules().add(Rule::any(Which::All, Fault::Hold(side, held.clone())));
        let mut request = std::pin::pin!(get_pods(&gateway));
        tokio::select! {
            answer = &mut request => panic!("the request was not held: {answer:?}"),
            () = held.reached() => {}
        }
        held.release();
        let answer = request.await;
        if side == Side::Instead {
            assert!(answer.is_err(), "the server has not received the request");
        } else {
            assert_eq!(answer.unwrap().text().await.unwrap(), WHOLE);
        }
    }
}

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

async fn ask(gateway: &Gateway) -> reqwest::Result<Response> {
    http_client::client().get(format!("{}/pods", gateway.url())).send().await
}

async fn ask_past(fault: Fault) -> (Gateway, reqwest::Result<Response>) {
    let gateway = gateway().await;
    gateway.rules().add(Rule::any(Which::Nth(1), fault));
    let answer = ask(&gateway).await;
    (gateway, answer)
}

#[tokio::test]
async fn a_refusal_comes_whole_and_the_next_request_passes() {
    let (gateway, answer) = ask_past(Fault::Answer(Answer::throttled(Some(3)))).await;
    let answer = answer.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"3".parse().unwrap()));
    assert!(ask(&gateway).await.unwrap().status().is_success());
}

#[tokio::test]
async fn an_answer_that_is_cut_short_breaks_off() {
    let (_gateway, answer) = ask_past(Fault::CutShort).await;
    // The head may have come; the body must not.
    let body = match answer {
        Ok(answer) => answer.text().await,
        Err(error) => Err(error),
    };
    assert!(body.is_err(), "{body:?}");
}

#[tokio::test]
async fn a_held_request_stands_until_it_is_released() {
    for side in [Side::Before, Side::After, Side::Instead] {
        let gateway = gateway().await;
        let held = Held::default();
        gateway.rules().add(Rule::any(Which::All, Fault::Hold(side, held.clone())));
        let mut asked = std::pin::pin!(ask(&gateway));
        tokio::select! {
            answer = &mut asked => panic!("it was not held: {answer:?}"),
            () = held.reached() => {}
        }
        held.release();
        let answer = asked.await;
        if side == Side::Instead {
            assert!(answer.is_err(), "the server has not seen it");
        } else {
            assert_eq!(answer.unwrap().text().await.unwrap(), WHOLE);
        }
    }
}

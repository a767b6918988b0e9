//! Where the webhook's document leads, and one POST to it.

use std::time::Duration;

use lambda_runtime::Error;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Proxy};
use secrecy::ExposeSecret as _;

use crate::document::Document;
use crate::echo::Secrets;
use crate::form::Form;
use crate::http;
use crate::webhook::{Said, WebhookError};

/// The document, with a client for it.
#[derive(Debug)]
pub(crate) struct Target {
    client: Client,
    document: Document,
}

impl Target {
    pub(crate) fn new(document: Document) -> Result<Self, Error> {
        let proxy = document.proxy.as_ref().map(|proxy| Proxy::all(proxy.expose_secret())).transpose();
        Ok(Self { client: http::client(proxy.map_err(reqwest::Error::without_url)?)?, document })
    }

    pub(crate) fn form(&self) -> &Form {
        &self.document.form
    }

    pub(crate) async fn post(&self, body: &str) -> Result<(), WebhookError> {
        let Document { url, headers, .. } = &self.document;
        let request = self.client.post(url.expose_secret()).headers(headers.clone()).body(body.to_owned());
        let response = request.send().await.map_err(|error| WebhookError::NoAnswer(http::why(error)))?;
        let status = response.status();
        // What is said with a success is not read, however long it is.
        if status.is_success() {
            return Ok(());
        }
        if status.is_redirection() {
            return Err(WebhookError::Moved(status));
        }
        let retry_after = retry_after(response.headers());
        let secrets = Secrets::of(url.expose_secret(), headers);
        let said = Said::new(secrets.cut_out_of(&http::read(response, secrets.enough()).await));
        Err(match status.as_u16() {
            408 | 429 | 500.. => WebhookError::Busy { status, said, retry_after },
            401 | 403 | 404 | 407 | 410 => WebhookError::NotAccepted { status, said },
            _ => WebhookError::Refused { status, said },
        })
    }
}

/// How long a busy webhook asks to be left alone. A date is not heeded: Slack and its like give seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

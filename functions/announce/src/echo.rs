//! Removes secrets from the webhook's answer, which may repeat parts of the request.

use std::cmp::Reverse;

use reqwest::header::{CONTENT_TYPE, HeaderMap};

/// Maximum bytes of the webhook's answer in the log.
const MOST: usize = 1024;
/// Minimum bytes of a text that is removed from the answer. Removing shorter texts would make the answer unreadable.
const SHORTEST: usize = 8;

/// Texts to remove from the webhook's answer: the URL, the headers, and parts of the URL and headers. Longest text first.
pub(crate) struct RequestSecrets<'a>(Vec<&'a str>);

impl<'a> RequestSecrets<'a> {
    pub(crate) fn of(url: &'a str, headers: &'a HeaderMap) -> Self {
        // The host is not a secret.
        let path = url.split_once("://").and_then(|(_, rest)| rest.split_once(['/', '?']).map(|(_, path)| path));
        let values = headers.iter().filter(|(name, _)| *name != CONTENT_TYPE);
        let values = values.filter_map(|(_, value)| value.to_str().ok());
        let of_url = path.into_iter().flat_map(|path| path.split(['/', '?', '&', '=']).chain([path]));
        let of_headers = values.flat_map(|value| value.split(' ').chain([value]));
        let all = of_url.chain(of_headers).chain([url]);
        let mut secrets: Vec<_> = all.filter(|secret| secret.len() >= SHORTEST).collect();
        secrets.sort_by_key(|secret| Reverse(secret.len()));
        Self(secrets)
    }

    /// Returns how many bytes of the webhook's answer are read.
    pub(crate) fn max_bytes_to_read(&self) -> usize {
        MOST + self.longest()
    }

    /// Returns the webhook's answer as one line of text, without secrets.
    pub(crate) fn redact(&self, answer: &[u8]) -> String {
        let line = String::from_utf8_lossy(answer).split_whitespace().collect::<Vec<_>>().join(" ");
        let mut text = self.0.iter().fold(line, |line, secret| line.replace(secret, "…"));
        // A longer answer may end within a secret.
        let cut_off = if answer.len() < self.max_bytes_to_read() { 0 } else { self.longest() };
        text.truncate(text.floor_char_boundary(text.len().saturating_sub(cut_off)));
        text
    }

    fn longest(&self) -> usize {
        self.0.first().map_or(0, |secret| secret.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support;

    const URL: &str = "https://hooks.example/services/T1/secret-of-the-channel?thread=7&token=secret-token";

    fn redacted(answer: &str) -> String {
        let headers = r#"{"Content-Type": "application/json", "Authorization": "Bearer secret-of-ours"}"#;
        let document = test_support::document(URL, headers, None);
        let secrets = RequestSecrets::of(URL, &document.headers);
        secrets.redact(&answer.as_bytes()[..answer.len().min(secrets.max_bytes_to_read())])
    }

    #[test]
    fn whole_and_partial_secrets_are_removed() {
        for (answer, expected) in [
            ("no application/json\nat hooks.example for 7", "no application/json at hooks.example for 7"),
            ("Cannot POST /services/T1/secret-of-the-channel", "Cannot POST /…/T1/…"),
            ("invalid token secret-of-ours or secret-token", "invalid token … or …"),
            ("Bearer secret-of-ours", "…"),
            (URL, "…"),
        ] {
            assert_eq!(redacted(answer), expected);
        }
        for before in 0..1200 {
            let text = redacted(&("x".repeat(before) + &"secret-of-the-channel ".repeat(60)));
            assert!(!text.contains("sec") && text.len() <= MOST, "{before}: {text}");
        }
    }
}

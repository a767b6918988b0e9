//! What an answer says, without the secrets of the request, which it may repeat whole or in part. Pure.

use std::cmp::Reverse;

use reqwest::header::{CONTENT_TYPE, HeaderMap};

/// How much of a refusal is told, in bytes: what is wrong stands at its beginning.
const TOLD: usize = 1024;
/// What is shorter is no secret, and to cut it out would make the answer unreadable.
const SHORTEST: usize = 8;

/// The URL, the headers and their parts, the longest first, so that no part is cut out of a whole.
pub(crate) struct Secrets<'a>(Vec<&'a str>);

impl<'a> Secrets<'a> {
    /// Those of a request.
    pub(crate) fn of(url: &'a str, headers: &'a HeaderMap) -> Self {
        // The host is no secret, and people look for it.
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

    /// How many bytes of an answer have to be read, so that a secret in what is told of it is read to its end.
    pub(crate) fn enough(&self) -> usize {
        TOLD + self.longest()
    }

    /// What is told of an answer, of which so much was read: text in one line.
    pub(crate) fn cut_out_of(&self, answer: &[u8]) -> String {
        let line = String::from_utf8_lossy(answer).split_whitespace().collect::<Vec<_>>().join(" ");
        let mut told = self.0.iter().fold(line, |line, secret| line.replace(secret, "…"));
        // At the end of what was read a secret may have begun that was not read to its end.
        let cut_off = if answer.len() < self.enough() { 0 } else { self.longest() };
        told.truncate(told.floor_char_boundary(told.len().saturating_sub(cut_off)));
        told
    }

    fn longest(&self) -> usize {
        self.0.first().map_or(0, |secret| secret.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;

    const URL: &str = "https://hooks.example/services/T1/secret-of-the-channel?thread=7&token=secret-token";

    /// What is told of an answer, as much of it as is read.
    fn told(answer: &str) -> String {
        let headers = r#"{"Content-Type": "application/json", "Authorization": "Bearer secret-of-ours"}"#;
        let document = wire::document(URL, headers, None);
        let secrets = Secrets::of(URL, &document.headers);
        secrets.cut_out_of(&answer.as_bytes()[..answer.len().min(secrets.enough())])
    }

    #[test]
    fn what_an_answer_repeats_is_cut_out_whole_or_in_part() {
        for (answer, expected) in [
            ("no application/json\nat hooks.example for 7", "no application/json at hooks.example for 7"),
            ("Cannot POST /services/T1/secret-of-the-channel", "Cannot POST /…/T1/…"),
            ("invalid token secret-of-ours or secret-token", "invalid token … or …"),
            ("Bearer secret-of-ours", "…"),
            (URL, "…"),
        ] {
            assert_eq!(told(answer), expected);
        }
    }

    #[test]
    fn no_secret_is_left_at_the_end_of_what_is_read_wherever_it_lies() {
        for before in 0..1200 {
            let answer = "x".repeat(before) + &"secret-of-the-channel ".repeat(60);
            let told = told(&answer);
            assert!(!told.contains("sec") && told.len() <= TOLD, "{before}: {told}");
        }
    }
}

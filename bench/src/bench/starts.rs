//! From the execution of a binary to its first poll of the Runtime API: the function's and an empty
//! one's, in turn, and parts of the function's own.
//!
//! The parts are found from outside, without a line in the product for it: reading the system's
//! certificates falls away when it is given a single one, and everything after the settings falls
//! away when they are wrong.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spillway_bed::BedError;
use spillway_bed::aws::Credentials;
use spillway_bed::certs::Authority;
use spillway_bed::lambda::{Account, InvocationError, Lambda, LambdaOptions};

use super::programs::Programs;
use crate::measure::micros;

/// What one turn of all starts took.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Starts {
    /// The empty function, to its first poll.
    #[serde(rename = "empty_us", with = "micros")]
    pub(super) empty: Duration,
    /// The function, to its first poll.
    #[serde(rename = "drain_us", with = "micros")]
    pub(super) drain: Duration,
    /// The function, with one certificate to read instead of the system's.
    #[serde(rename = "one_certificate_us", with = "micros")]
    pub(super) one_certificate: Duration,
    /// The empty function, to its end, when it ends at once.
    #[serde(rename = "empty_ends_us", with = "micros")]
    pub(super) empty_ends: Duration,
    /// The function, to its end, when its settings are wrong: program, logs and settings, no more.
    #[serde(rename = "drain_ends_us", with = "micros")]
    pub(super) drain_ends: Duration,
}

pub(super) async fn measure(programs: &Programs, turns: usize) -> Result<Vec<Starts>, BedError> {
    let folder = tempfile::tempdir().map_err(BedError::io("make a folder"))?;
    let certificate = folder.path().join("one.pem");
    std::fs::write(&certificate, Authority::new("one")?.pem()).map_err(BedError::io("write a certificate"))?;
    let one = [("SSL_CERT_FILE", certificate.to_string_lossy().into_owned())];

    let empty = function(&programs.empty, &[]);
    let drain = function(&programs.drain, &[]);
    let one_certificate = function(&programs.drain, &one);
    let mut all = Vec::with_capacity(turns);
    for _ in 0..turns {
        all.push(Starts {
            empty: to_first_poll(&empty).await?,
            drain: to_first_poll(&drain).await?,
            one_certificate: to_first_poll(&one_certificate).await?,
            empty_ends: to_end(&programs.empty, "SPILLWAY_EMPTY_ENDS")?,
            drain_ends: to_end(&programs.drain, "SPILLWAY_DRAIN_ON")?,
        });
    }
    Ok(all)
}

/// Nothing is asked of AWS before an event comes, so there need be none.
fn function(binary: &Path, env: &[(&str, String)]) -> Lambda {
    let credentials = Credentials {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: "secret".to_owned(),
        session_token: "token".to_owned(),
        role_arn: String::new(),
    };
    let account = Account {
        endpoint: "http://127.0.0.1:9".to_owned(),
        region: "us-east-1".to_owned(),
        id: "123456789012".to_owned(),
        credentials,
    };
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Lambda::in_account(account, LambdaOptions { binary: binary.to_owned(), env, ..LambdaOptions::default() })
}

async fn to_first_poll(lambda: &Lambda) -> Result<Duration, BedError> {
    let failed = |error: InvocationError| BedError::NotMeasured {
        wanted: "the time to the first poll".to_owned(),
        seen: error.to_string(),
    };
    let init = lambda.initialize().await.map_err(failed)?;
    lambda.recycle();
    Ok(init.duration)
}

/// Either program ends by itself when this variable has no value that it accepts.
fn to_end(binary: &Path, variable: &str) -> Result<Duration, BedError> {
    let begin = Instant::now();
    Command::new(binary)
        .env_clear()
        .env(variable, "bench")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(BedError::io(format!("run {}", binary.display())))?;
    Ok(begin.elapsed())
}

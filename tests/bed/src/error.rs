//! Errors of the bed, one variant for each remedy.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum BedError {
    #[error("the test bed is not set up: {} missing; run `make bed-setup`", list(missing))]
    NotSetUp { missing: Vec<PathBuf> },

    /// A program that did not start, or ended, with its log's last lines.
    #[error("{name} {what}\nits log is {}\n{tail}", log.display())]
    Program { name: String, what: String, log: PathBuf, tail: String },

    #[error("cannot {doing}")]
    Io {
        doing: String,
        #[source]
        source: std::io::Error,
    },

    #[error("cannot make a certificate for {name}")]
    Certificate {
        name: String,
        #[source]
        source: rcgen::Error,
    },

    #[error("cannot {doing}")]
    Kubernetes {
        doing: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    #[error("the AWS side answered {call} with {status}: {text}")]
    Aws { call: String, status: u16, text: String },

    #[error("cannot reach the AWS side for {call}")]
    AwsUnreachable {
        call: String,
        #[source]
        source: reqwest::Error,
    },

    #[error("the node was not drained; the function answered: {answer}")]
    NotDrained { answer: String },

    #[error("{wanted} was to be measured; what came is {seen}")]
    NotMeasured { wanted: String, seen: String },

    #[error("waited {waited_s} s for {what}; last observation: {last}")]
    Waited { what: String, waited_s: u64, last: String },
}

impl BedError {
    pub fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    pub fn kubernetes<E>(doing: impl Into<String>) -> impl FnOnce(E) -> Self
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let doing = doing.into();
        move |source| Self::Kubernetes { doing, source: Box::new(source) }
    }

    /// The error and its causes in one line.
    pub fn story(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

fn list(missing: &[PathBuf]) -> String {
    let names: Vec<_> = missing.iter().map(|path| path.display().to_string()).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", names.join(", "))
}

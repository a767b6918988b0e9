//! The announce function behind its queue, as in the template.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::aws::Aws;
use crate::error::BedError;
use crate::lambda::{Lambda, LambdaOptions, Outcome, Poller, built};
use crate::tls;
use crate::world::World;

const ROLE: &str = "spillway-announcer";

/// Maximum wait for a message.
const WAIT: Duration = Duration::from_mins(2);

/// An announce function that polls until dropped.
#[derive(Debug)]
pub struct Announcer {
    lambda: Lambda,
    aws: Aws,
    queue: String,
    undelivered: String,
    outcomes: watch::Receiver<Vec<Outcome>>,
    polling: JoinHandle<()>,
    _trusted: NamedTempFile,
}

impl Announcer {
    /// Deploys an announcer for the events of `sender`, with these parameters of the template. Queues and session have the
    /// sender's name. An absent window is the template's.
    pub async fn deploy(
        world: &World,
        sender: (&str, &Lambda),
        parameters: &[(&str, &str)],
        window: Option<Duration>,
    ) -> Result<Self, BedError> {
        let (name, function) = sender;
        let parameters: BTreeMap<String, String> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let aws = world.aws_side();
        let stack = aws.deploy_announcer(function.access_key_id(), name, &parameters).await?;
        let trusted = trusted()?;
        let mut variables = stack.variables;
        variables.insert("SSL_CERT_FILE".to_owned(), trusted.path().display().to_string());
        let options = LambdaOptions {
            binary: built("SPILLWAY_ANNOUNCE", "spillway-announce"),
            env: variables,
            function_name: format!("{name}-announcer"),
            timeout: Duration::from_secs(stack.timeout_s),
            ..LambdaOptions::default()
        };
        let lambda = Lambda::in_role(world, ROLE, options).await?;
        let poller = Poller {
            aws: aws.clone(),
            queue: stack.queue.clone(),
            lambda: lambda.clone(),
            batch_size: stack.batch_size,
            window: window.unwrap_or(Duration::from_secs_f64(stack.window_s)),
        };
        let (sender, outcomes) = watch::channel(Vec::new());
        let polling = tokio::spawn(async move {
            let Err(error) = poller.run(sender).await;
            eprintln!("the poller of an announcer has failed: {error}");
        });
        Ok(Self {
            lambda,
            aws,
            queue: stack.queue,
            undelivered: stack.undelivered,
            outcomes,
            polling,
            _trusted: trusted,
        })
    }

    pub fn lambda(&self) -> &Lambda {
        &self.lambda
    }

    /// Puts events into the announcer's queue.
    pub async fn send(&self, events: &[Value]) -> Result<(), BedError> {
        self.aws.put_messages(&self.queue, events).await
    }

    /// Waits for that many invocations; returns all outcomes.
    pub async fn until_invoked(&self, times: usize) -> Result<Vec<Outcome>, BedError> {
        let mut outcomes = self.outcomes.clone();
        let invoked = timeout(WAIT, outcomes.wait_for(|outcomes| outcomes.len() >= times)).await;
        match invoked {
            Ok(Ok(outcomes)) => Ok(outcomes.clone()),
            _ => Err(BedError::Waited {
                what: format!("invocation {times} of {}", self.queue),
                waited_s: WAIT.as_secs(),
                last: format!("{:#?}", self.outcomes.borrow()),
            }),
        }
    }

    /// Waits for that many events in the dead-letter queue; returns all.
    pub async fn until_undelivered(&self, events: usize) -> Result<Vec<Value>, BedError> {
        let bodies = self.aws.messages(&self.undelivered, events, WAIT.as_secs()).await?;
        Ok(bodies.iter().map(|body| serde_json::from_str(body).unwrap_or_default()).collect())
    }
}

/// File of the announcer's trusted authorities: that of the bed's webhooks.
fn trusted() -> Result<NamedTempFile, BedError> {
    let write = || {
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), tls::internet_authority())?;
        Ok(file)
    };
    write().map_err(BedError::io("write the file of trusted authorities"))
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.polling.abort();
    }
}

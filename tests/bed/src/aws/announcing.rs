//! The queues that messages about drains go through, and what they go to: topics, buckets, and places for a secret.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Aws;
use crate::error::BedError;

/// What the template has around the function that sends messages, made for one test.
#[derive(Debug, Deserialize)]
pub(crate) struct AnnouncerStack {
    pub(crate) queue: String,
    pub(crate) undelivered: String,
    pub(crate) batch_size: usize,
    pub(crate) window_s: f64,
    pub(crate) timeout_s: u64,
    /// What the function is told.
    pub(crate) variables: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Named {
    arn: String,
}

impl Aws {
    /// A stack's queues, which what this caller puts on the bus goes to by the template's rule.
    pub(crate) async fn deploy_announcer(
        &self,
        sender: &str,
        name: &str,
        parameters: &BTreeMap<String, String>,
    ) -> Result<AnnouncerStack, BedError> {
        self.post("announcers", &json!({"sender": sender, "name": name, "parameters": parameters})).await
    }

    /// Records an event source mapping of that function.
    pub async fn create_mapping(&self, function: &str, source: &str) -> Result<(), BedError> {
        self.post::<Value>("mappings", &json!({"function": function, "source": source})).await.map(drop)
    }

    /// Takes messages from a queue, as Lambda's records of them; waits for the first.
    pub(crate) async fn receive(&self, queue: &str, most: usize, wait: Duration) -> Result<Vec<Value>, BedError> {
        self.post("messages/receive", &json!({"name": queue, "most": most, "wait_s": wait.as_secs_f64()})).await
    }

    /// Deletes messages by their handles, and lets others be received again.
    pub(crate) async fn settle(&self, queue: &str, done: &[String], come_back: &[String]) -> Result<(), BedError> {
        let body = json!({"name": queue, "done": done, "come_back": come_back});
        self.post::<Value>("messages/settle", &body).await.map(drop)
    }

    /// The messages in a queue that nobody has in hand, without taking them. Waits until there are so many.
    pub(crate) async fn messages(&self, queue: &str, least: usize, wait: Duration) -> Result<Vec<String>, BedError> {
        let path = format!("messages?name={queue}&least={least}&wait_s={}", wait.as_secs());
        self.call(Method::GET, &path, None).await
    }

    /// An SNS topic with a subscriber; answers its ARN.
    pub async fn create_topic(&self, name: &str) -> Result<String, BedError> {
        Ok(self.post::<Named>("topics", &json!({"name": name})).await?.arn)
    }

    /// What the subscriber of a topic has got, as SNS hands it over.
    pub async fn published(&self, topic: &str) -> Result<Vec<Value>, BedError> {
        self.call(Method::GET, &format!("topics?name={topic}"), None).await
    }

    pub async fn create_bucket(&self, name: &str) -> Result<(), BedError> {
        self.post::<Value>("buckets", &json!({"name": name})).await.map(drop)
    }

    /// A bucket of another account, which lets everybody write.
    pub async fn create_bucket_of(&self, account: &str, name: &str) -> Result<(), BedError> {
        self.post::<Value>("buckets", &json!({"name": name, "account": account})).await.map(drop)
    }

    /// The objects of a bucket by their keys.
    pub async fn objects(&self, bucket: &str) -> Result<BTreeMap<String, String>, BedError> {
        self.call(Method::GET, &format!("buckets?name={bucket}"), None).await
    }

    /// A `SecureString` of Parameter Store.
    pub async fn put_parameter(&self, name: &str, value: &str) -> Result<(), BedError> {
        self.post::<Value>("parameters", &json!({"name": name, "value": value})).await.map(drop)
    }

    /// A secret of Secrets Manager; answers its ARN.
    pub async fn put_secret(&self, name: &str, value: &str) -> Result<String, BedError> {
        Ok(self.post::<Named>("secrets", &json!({"name": name, "value": value})).await?.arn)
    }

    /// Gives a secret another value.
    pub async fn change_secret(&self, arn: &str, value: &str) -> Result<(), BedError> {
        self.post::<Value>("secrets/change", &json!({"arn": arn, "value": value})).await.map(drop)
    }
}

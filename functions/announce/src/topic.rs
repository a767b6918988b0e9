//! The SNS topic: one notification for each message, in words or as Amazon Q in chat applications takes it.

use reqwest::Method;

use crate::aws::{Aws, AwsError, Call, Service};
use crate::group::Message;
use crate::settings::{self, TopicFormat};
use crate::{amazon_q, text};

const SNS: Service = Service { id: "SNS", host: "sns" };

/// Where notifications are published.
#[derive(Debug)]
pub(crate) struct Topic {
    settings: settings::Topic,
    aws: Aws,
}

impl Topic {
    pub(crate) fn new(settings: settings::Topic, aws: Aws) -> Self {
        Self { settings, aws }
    }

    /// Publishes a message.
    pub(crate) async fn send(&self, message: &Message<'_>) -> Result<(), AwsError> {
        let settings::Topic { arn, region, format } = &self.settings;
        let mut fields = form_urlencoded::Serializer::new(String::new());
        fields.extend_pairs([("Action", "Publish"), ("Version", "2010-03-31"), ("TopicArn", arn)]);
        match format {
            TopicFormat::Text => {
                fields.append_pair("Subject", &text::subject(message)).append_pair("Message", &text::body(message))
            }
            TopicFormat::AmazonQ => fields.append_pair("Message", &amazon_q::notification(message).to_string()),
        };
        let call = Call {
            service: SNS,
            region: Some(region),
            action: "sns:Publish",
            method: Method::POST,
            path: "/",
            headers: &[("content-type", "application/x-www-form-urlencoded")],
            body: fields.finish().into_bytes(),
        };
        self.aws.call(&call).await.map(drop)
    }
}

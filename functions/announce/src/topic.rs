//! Publishes each message to an SNS topic.

use spillway_aws_call::{Call, CallError, Caller, Service};
use tokio::time::Instant;

use crate::group::Message;
use crate::{retry, settings, text};

#[derive(Debug)]
pub(crate) struct Topic {
    settings: settings::TopicSettings,
    aws: Caller,
}

impl Topic {
    pub(crate) fn new(settings: settings::TopicSettings, aws: Caller) -> Self {
        Self { settings, aws }
    }

    pub(crate) async fn send(&self, message: &Message<'_>, end: Instant) -> Result<(), CallError> {
        let settings::TopicSettings { arn, region } = &self.settings;
        let mut fields = form_urlencoded::Serializer::new(String::new());
        fields.extend_pairs([("Action", "Publish"), ("Version", "2010-03-31"), ("TopicArn", arn)]);
        fields.append_pair("Subject", &text::subject(message)).append_pair("Message", &text::body(message));
        let call = Call {
            service: Service::Sns,
            region: Some(region),
            action: "sns:Publish",
            method: "POST",
            path: "/",
            headers: vec![("content-type", "application/x-www-form-urlencoded")],
            body: &fields.finish(),
        };
        retry::call(call.action, end, async || self.aws.call(&call).await).await.map(drop)
    }
}

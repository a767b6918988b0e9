//! Test double of AWS behind the SDK's clients, with the answers of each service.

use std::fmt;
use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;

/// A call to AWS.
#[derive(Debug)]
pub struct AwsCall {
    /// Action if the protocol names it, else method and path.
    pub name: String,
    pub body: String,
}

/// Status and body; `None` breaks the connection.
pub type AwsAnswer = Option<(u16, String)>;

/// Answers every call to AWS.
#[derive(Clone)]
pub struct AwsDouble(Arc<dyn Fn(AwsCall) -> BoxFuture<'static, AwsAnswer> + Send + Sync>);

impl AwsDouble {
    /// Double that answers with a function.
    pub fn new<A>(answer: impl Fn(AwsCall) -> A + Send + Sync + 'static) -> Self
    where
        A: Future<Output = AwsAnswer> + Send + 'static,
    {
        Self(Arc::new(move |call| answer(call).boxed()))
    }
}

impl fmt::Debug for AwsDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsDouble")
    }
}

impl HttpClient for AwsDouble {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for AwsDouble {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let answer = (self.0)(AwsCall::read(&request));
        HttpConnectorFuture::new(async move {
            match answer.await {
                Some((status, body)) => Ok(response(status, body)),
                None => Err(ConnectorError::io("the connection broke".into())),
            }
        })
    }
}

impl AwsCall {
    fn read(request: &HttpRequest) -> Self {
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        let target = request.headers().get("x-amz-target").and_then(|target| target.split('.').next_back());
        let action = body.strip_prefix("Action=").and_then(|body| body.split('&').next());
        let path = || {
            let uri: http::Uri = request.uri().parse().expect("the SDK's own");
            format!("{} {}", request.method(), uri.path())
        };
        let name = target.or(action).map_or_else(path, str::to_owned);
        Self { name, body }
    }

    /// Returns a parameter of the query protocol, without decoding.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.body.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }
}

fn response(status: u16, body: String) -> HttpResponse {
    let error: Option<serde_json::Value> = serde_json::from_str(&body).ok();
    let mut response = HttpResponse::new(StatusCode::try_from(status).expect("a status"), SdkBody::from(body));
    response.headers_mut().insert("x-amzn-requestid", "aws-1");
    // Lambda's form.
    if let Some(code) = error.as_ref().and_then(|error| error["__type"].as_str()) {
        response.headers_mut().insert("x-amzn-errortype", code.to_owned());
    }
    response
}

/// Answer of EKS with a cluster.
#[must_use]
pub fn eks_cluster(endpoint: &str) -> String {
    let ca = json!({"data": "Y2E="});
    json!({"cluster": {"endpoint": endpoint, "certificateAuthority": ca}}).to_string()
}

/// Answer of EC2 with instances.
#[must_use]
pub fn instances(items: &str) -> String {
    format!(
        "<DescribeInstancesResponse><reservationSet><item><instancesSet>{items}</instancesSet></item></reservationSet>\
         </DescribeInstancesResponse>"
    )
}

/// Answer of Auto Scaling with one hook and its timeouts in seconds.
#[must_use]
pub fn hooks(heartbeat_s: u64, in_all_s: u64) -> String {
    format!(
        "<DescribeLifecycleHooksResponse><DescribeLifecycleHooksResult><LifecycleHooks><member>\
         <HeartbeatTimeout>{heartbeat_s}</HeartbeatTimeout><GlobalTimeout>{in_all_s}</GlobalTimeout></member>\
         </LifecycleHooks></DescribeLifecycleHooksResult></DescribeLifecycleHooksResponse>"
    )
}

/// Answer of Auto Scaling with one group, with or without the policy that keeps abandoned instances.
#[must_use]
pub fn groups(keeps_abandoned: bool) -> String {
    let policy = "<InstanceLifecyclePolicy><RetentionTriggers><TerminateHookAbandon>retain</TerminateHookAbandon>\
                  </RetentionTriggers></InstanceLifecyclePolicy>";
    format!(
        "<DescribeAutoScalingGroupsResponse><DescribeAutoScalingGroupsResult><AutoScalingGroups><member>\
         <AutoScalingGroupName>my-asg</AutoScalingGroupName>{}</member></AutoScalingGroups>\
         </DescribeAutoScalingGroupsResult></DescribeAutoScalingGroupsResponse>",
        if keeps_abandoned { policy } else { "" }
    )
}

/// Error of a service with XML.
#[must_use]
pub fn query_error(code: &str, message: &str) -> String {
    format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    )
}

/// Error of EC2.
#[must_use]
pub fn ec2_error(code: &str, message: &str) -> String {
    format!("<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors></Response>")
}

/// Error of a service with JSON.
#[must_use]
pub fn json_error(code: &str) -> String {
    json!({"__type": code, "message": "why", "Message": "why"}).to_string()
}

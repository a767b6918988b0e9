//! AWS that follows a script: an HTTP client for the SDK; and the answers of each service in its own words.

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_types::SdkConfig;
use aws_types::region::Region;
use serde_json::json;
use spillway_aws_call::Caller;

use super::instance_id;
use super::script::{Answer, Expected, Script, call};
use crate::aws::itself::Itself;

/// Answers every call of the SDK.
#[derive(Debug, Clone)]
pub(crate) enum ScriptedAws {
    /// As the script has it.
    By(Script),
    /// As EKS describes a cluster.
    Eks,
}

impl HttpClient for ScriptedAws {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for ScriptedAws {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self::By(script) = self else {
            let ca = json!({"data": "Y2E="});
            let cluster = json!({"cluster": {"endpoint": "https://127.0.0.1", "certificateAuthority": ca}});
            return HttpConnectorFuture::ready(Ok(response(200, cluster.to_string())));
        };
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        let refusal = || Answer::Says(400, json!({"__type": "Unexpected", "message": "by the test"}).to_string());
        match script.answer(&name(&request, &body), &body).unwrap_or_else(refusal) {
            Answer::Says(status, body) => HttpConnectorFuture::ready(Ok(response(status, body))),
            Answer::Streams(lines) => HttpConnectorFuture::ready(Ok(response(200, lines.concat()))),
            Answer::Lost => HttpConnectorFuture::ready(Err(ConnectorError::io("the connection broke".into()))),
            Answer::Hangs => HttpConnectorFuture::new(std::future::pending()),
        }
    }
}

/// The function itself, called by that client.
pub(crate) fn itself(http: impl HttpClient + 'static) -> Itself {
    let credentials = SharedCredentialsProvider::new(Credentials::new("id", "secret", None, None, "test"));
    let aws = SdkConfig::builder().http_client(http).credentials_provider(credentials);
    let aws = aws.region(Region::new("us-east-1")).build();
    Itself::new(Caller::new(&aws).unwrap(), "drain")
}

/// The action where the protocol names it, else the method and the path.
fn name(request: &HttpRequest, body: &str) -> String {
    let target = request.headers().get("x-amz-target").and_then(|target| target.split('.').next_back());
    let action = body.strip_prefix("Action=").and_then(|body| body.split('&').next());
    if let Some(action) = target.or(action) {
        return action.to_owned();
    }
    let path = request.uri().parse::<http::Uri>().map(|uri| uri.path().to_owned());
    format!("{} {}", request.method(), path.unwrap())
}

fn response(status: u16, body: String) -> HttpResponse {
    let error: Option<serde_json::Value> = serde_json::from_str(&body).ok();
    let mut response = HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::from(body));
    response.headers_mut().insert("x-amzn-requestid", "aws-1");
    // As Lambda says it.
    if let Some(code) = error.as_ref().and_then(|error| error["__type"].as_str()) {
        response.headers_mut().insert("x-amzn-errortype", code.to_owned());
    }
    response
}

/// EC2 is asked for the instance, and describes it in a state and with tags.
pub(crate) fn described(state: &str, tags: &[(&str, &str)]) -> Expected {
    let tag = |(key, value): &(&str, &str)| format!("<item><key>{key}</key><value>{value}</value></item>");
    let tags: String = tags.iter().map(tag).collect();
    let instance = format!(
        "<item><instanceId>{}</instanceId><instanceState><name>{state}</name></instanceState>\
         <placement><availabilityZone>us-east-1a</availabilityZone></placement><tagSet>{tags}</tagSet></item>",
        instance_id()
    );
    call("DescribeInstances").says(200, instances(&instance))
}

/// EC2's answer with these instances.
pub(crate) fn instances(items: &str) -> String {
    format!(
        "<DescribeInstancesResponse><reservationSet><item><instancesSet>{items}</instancesSet></item></reservationSet>\
         </DescribeInstancesResponse>"
    )
}

/// Auto Scaling is asked for the hook, which waits for 300 s after each heartbeat.
pub(crate) fn hook_described() -> Expected {
    let hook = "<member><HeartbeatTimeout>300</HeartbeatTimeout><GlobalTimeout>30000</GlobalTimeout></member>";
    call("DescribeLifecycleHooks").says(
        200,
        format!(
            "<DescribeLifecycleHooksResponse><DescribeLifecycleHooksResult><LifecycleHooks>{hook}</LifecycleHooks>\
             </DescribeLifecycleHooksResult></DescribeLifecycleHooksResponse>"
        ),
    )
}

/// Auto Scaling gets a heartbeat.
pub(crate) fn heartbeat() -> Expected {
    call("RecordLifecycleActionHeartbeat")
        .says(200, "<RecordLifecycleActionHeartbeatResponse></RecordLifecycleActionHeartbeatResponse>")
}

/// Auto Scaling gets that result.
pub(crate) fn completed(result: &str) -> Expected {
    call("CompleteLifecycleAction")
        .with(format!("LifecycleActionResult={result}"))
        .with(format!("InstanceId={}", instance_id()))
        .says(200, "<CompleteLifecycleActionResponse></CompleteLifecycleActionResponse>")
}

/// The same calls answered: nobody waits any more.
pub(crate) fn waits_no_more() -> String {
    query_error("ValidationError", "No active Lifecycle Action found with instance ID i-1")
}

/// An error of Auto Scaling's.
pub(crate) fn query_error(code: &str, message: &str) -> String {
    format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    )
}

/// An error of a service that speaks JSON.
pub(crate) fn json_error(code: &str) -> String {
    json!({"__type": code, "message": "why", "Message": "why"}).to_string()
}

/// The event bus takes an event.
pub(crate) fn put_event() -> Expected {
    call("PutEvents").says(200, json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}))
}

/// The function is invoked with such a continuation.
pub(crate) fn invoked() -> Expected {
    call(INVOKE).with("spillway-continuation").says(202, "")
}

/// Lambda's call.
pub(crate) const INVOKE: &str = "POST /2015-03-31/functions/drain/invocations";

/// Scheduler takes a schedule of that name.
pub(crate) fn scheduled(name: &str) -> Expected {
    call(format!("POST /schedules/{name}")).says(200, json!({"ScheduleArn": "arn"}))
}

//! Calls the Lambda API: invokes this function, and reads limits and event source mappings.

use serde_json::Value;
use spillway_aws_call::{Call, Caller, Failed, Service};

use crate::aws::CallError;

pub(crate) const INVOKE: &str = "lambda:InvokeFunction";
pub const MAPPINGS: &str = "lambda:ListEventSourceMappings";
const ACCOUNT_SETTINGS: &str = "lambda:GetAccountSettings";

#[derive(Debug)]
pub struct Itself {
    caller: Caller,
    path: String,
    mappings: String,
}

#[derive(Debug)]
pub struct Mapping {
    pub id: String,
    /// ARN of the event source, such as a queue. `None` for a self-managed Kafka cluster.
    pub source: Option<String>,
}

impl Itself {
    pub(crate) fn new(caller: Caller, name: &str) -> Self {
        Self {
            caller,
            path: format!("/2015-03-31/functions/{name}/invocations"),
            mappings: format!("/2015-03-31/event-source-mappings?FunctionName={name}"),
        }
    }

    /// Invokes this Lambda function asynchronously.
    pub async fn invoke(&self, payload: &str) -> Result<(), CallError> {
        self.invoke_as("Event", payload).await.map_err(|failed| CallError::new(INVOKE, failed))
    }

    /// Tests with a dry run whether this Lambda function may invoke itself.
    pub async fn rehearse_invoke(&self) -> Result<(), Failed> {
        self.invoke_as("DryRun", "{}").await
    }

    /// Reads the account's unreserved concurrency.
    pub async fn concurrency_limit(&self) -> Result<u64, CallError> {
        let settings = self.caller.json(&get(ACCOUNT_SETTINGS, "/2016-08-19/account-settings")).await?;
        let limit = settings["AccountLimit"]["UnreservedConcurrentExecutions"].as_u64();
        limit.ok_or_else(|| CallError::unanswered(ACCOUNT_SETTINGS, "the answer has no limit"))
    }

    /// Returns the first page of this Lambda function's event source mappings.
    pub async fn mappings(&self) -> Result<Vec<Mapping>, CallError> {
        let answer = self.caller.json(&get(MAPPINGS, &self.mappings)).await?;
        let all = answer["EventSourceMappings"].as_array();
        let all = all.ok_or_else(|| CallError::unanswered(MAPPINGS, "the answer has no list of mappings"))?;
        let text = |mapping: &Value, key: &str| mapping[key].as_str().map(str::to_owned);
        let read = |one| Mapping { id: text(one, "UUID").unwrap_or_default(), source: text(one, "EventSourceArn") };
        Ok(all.iter().map(read).collect())
    }

    async fn invoke_as(&self, invocation_type: &str, payload: &str) -> Result<(), Failed> {
        self.caller.attempt(&invocation(&self.path, invocation_type, payload)).await.map(drop)
    }
}

fn invocation<'a>(path: &'a str, invocation_type: &'a str, payload: &'a str) -> Call<'a> {
    Call {
        service: Service::Lambda,
        action: INVOKE,
        region: None,
        method: "POST",
        path,
        headers: vec![("content-type", "application/json"), ("x-amz-invocation-type", invocation_type)],
        body: payload,
    }
}

fn get<'a>(action: &'static str, path: &'a str) -> Call<'a> {
    Call { service: Service::Lambda, action, region: None, method: "GET", path, headers: Vec::new(), body: "" }
}

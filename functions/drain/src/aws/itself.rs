//! Lambda: the function itself, invoked once more by a call that IAM allows to this function alone; and how many invocations
//! may run at once.

use aws_sdk_lambda::Client;
use aws_sdk_lambda::operation::invoke::{InvokeError, InvokeOutput};
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::http::Response;

use crate::aws::CallError;

pub(crate) const INVOKE: &str = "lambda:InvokeFunction";
pub(crate) const ACCOUNT_SETTINGS: &str = "lambda:GetAccountSettings";

/// The way to the function itself.
#[derive(Debug)]
pub(crate) struct Itself {
    lambda: Client,
    name: String,
}

impl Itself {
    /// The function of that name.
    pub(crate) fn new(lambda: Client, name: &str) -> Self {
        Self { lambda, name: name.to_owned() }
    }

    /// Has the function invoked with a payload, soon and by itself.
    pub(crate) async fn invoke(&self, payload: String) -> Result<(), CallError> {
        let invoked = self.call(InvocationType::Event, payload).await;
        invoked.map(drop).map_err(|error| CallError::new(INVOKE, error))
    }

    /// Asks whether it might be, as the doctor does: nothing is invoked.
    pub(crate) async fn ask(&self) -> Result<InvokeOutput, SdkError<InvokeError, Response>> {
        self.call(InvocationType::DryRun, "{}".to_owned()).await
    }

    /// How many invocations may run at once, of all functions of the account that have none reserved.
    pub(crate) async fn concurrency_limit(&self) -> Result<usize, CallError> {
        let settings = self.lambda.get_account_settings().send().await;
        let settings = settings.map_err(|error| CallError::new(ACCOUNT_SETTINGS, error))?;
        let limit = settings.account_limit.and_then(|limits| limits.unreserved_concurrent_executions);
        Ok(limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or_default())
    }

    async fn call(
        &self,
        how: InvocationType,
        payload: String,
    ) -> Result<InvokeOutput, SdkError<InvokeError, Response>> {
        let call = self.lambda.invoke().function_name(&self.name).invocation_type(how);
        call.payload(Blob::new(payload)).send().await
    }
}

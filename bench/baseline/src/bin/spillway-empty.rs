//! The least that Lambda's runtime for Rust can be: what a start costs before the function's own part.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Value>| Ok::<_, Error>(event.payload))).await
}

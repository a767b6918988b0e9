//! The environment variables that Lambda gives an OS-only runtime, and the function's own.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use jiff::Timestamp;

use super::{Function, random};

/// Everything the process finds in its environment. Of the caller's own nothing is there.
pub(super) fn of(function: &Function, runtime_api: SocketAddr) -> BTreeMap<String, String> {
    let options = &function.options;
    let account = &function.account;
    let name = &options.function_name;
    let folder = options.binary.parent().unwrap_or(&options.binary);
    let stream = format!("{}/[$LATEST]{:016x}{:016x}", Timestamp::now().strftime("%Y/%m/%d"), random(), random());

    let given = [
        ("AWS_LAMBDA_RUNTIME_API", runtime_api.to_string()),
        ("AWS_LAMBDA_FUNCTION_NAME", name.clone()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", options.memory_mb.to_string()),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{name}")),
        ("AWS_LAMBDA_LOG_STREAM_NAME", stream),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON".to_owned()),
        ("AWS_LAMBDA_LOG_LEVEL", "INFO".to_owned()),
        ("AWS_REGION", account.region.clone()),
        ("AWS_DEFAULT_REGION", account.region.clone()),
        ("AWS_ACCESS_KEY_ID", account.credentials.access_key_id.clone()),
        ("AWS_SECRET_ACCESS_KEY", account.credentials.secret_access_key.clone()),
        ("AWS_SESSION_TOKEN", account.credentials.session_token.clone()),
        ("_HANDLER", "bootstrap".to_owned()),
        ("LAMBDA_TASK_ROOT", folder.display().to_string()),
        ("LAMBDA_RUNTIME_DIR", "/var/runtime".to_owned()),
        ("TZ", ":UTC".to_owned()),
        ("LANG", "en_US.UTF-8".to_owned()),
        ("PATH", "/usr/local/bin:/usr/bin/:/bin:/opt/bin".to_owned()),
        // Not Lambda's: the way to an AWS that is not AWS.
        ("AWS_ENDPOINT_URL", account.endpoint.clone()),
    ];
    let mut variables: BTreeMap<_, _> = given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    variables.extend(options.env.clone());
    variables
}

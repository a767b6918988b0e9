//! The function that is invoked, and the drivers that invoke it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use spillway_bed::aws::Credentials;
use spillway_bed::lambda::{Account, Lambda, LambdaOptions};

/// `function.py` as an executable. Its interpreter is named whole: Lambda's PATH may not have it.
static FUNCTION: LazyLock<PathBuf> = LazyLock::new(|| {
    let python =
        Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().expect("python3 is there");
    let python = String::from_utf8(python.stdout).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Renamed when complete: another process of these tests may be running the one before.
    let (new, path) = (folder.join(format!("new-{}", std::process::id())), folder.join("bootstrap"));
    fs::write(&new, format!("#!{}\n{}", python.trim(), include_str!("function.py"))).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&new, &path).unwrap();
    path
});

pub(crate) fn options() -> LambdaOptions {
    LambdaOptions {
        binary: FUNCTION.clone(),
        env: BTreeMap::new(),
        function_name: "under-test".to_owned(),
        timeout: Duration::from_secs(60),
        memory_mb: 192,
        freeze: true,
        maximum_retry_attempts: None,
        maximum_event_age: None,
        reserved_concurrency: None,
        wait_factor: 0.001,
        init_timeout: Duration::from_secs(10),
    }
}

pub(crate) fn start(options: LambdaOptions) -> Lambda {
    start_with_endpoint("http://127.0.0.1:1", options)
}

pub(crate) fn start_with_endpoint(endpoint: &str, options: LambdaOptions) -> Lambda {
    let account = Account {
        endpoint: endpoint.to_owned(),
        region: "us-east-1".to_owned(),
        id: "123456789012".to_owned(),
        credentials: Credentials {
            access_key_id: "AKID".to_owned(),
            secret_access_key: "secret".to_owned(),
            session_token: "token".to_owned(),
            role_arn: "arn:aws:iam::123456789012:role/spillway-drain".to_owned(),
        },
    };
    Lambda::in_account(account, options)
}

pub(crate) fn with_init(what: &str) -> LambdaOptions {
    LambdaOptions { env: BTreeMap::from([("INIT".to_owned(), what.to_owned())]), ..options() }
}

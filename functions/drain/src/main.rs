//! The drain function: a notice in, a drained node out. It wires and nothing else.

use lambda_runtime::Error;
use spillway_startup::logs;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start();
    spillway_drainer::run(std::env::vars()).await
}

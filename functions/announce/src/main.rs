//! Entry point of the announce function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    spillway_announce::run().await
}

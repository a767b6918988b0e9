//! The announce function. See the library for the layout.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    spillway_announce::run().await
}

//! Drains by a build of the drain function, behind Lambda's asynchronous queue.

use std::path::Path;

use futures_util::future::try_join_all;
use jiff::Timestamp;
use serde_json::Value;
use spillway_bed::BedError;
use spillway_bed::lambda::{Lambda, LambdaOptions};

use crate::figures::Figures;
use crate::fixture::{End, Fixture, Scene};

/// A deployment ends with a self-test.
const SELF_TEST: &str = include_str!("../../events/doctor.json");

/// A deployed function without a process.
#[derive(Debug)]
pub(crate) struct Function {
    lambda: Lambda,
    user: String,
}

impl Function {
    /// Deploys a build under a unique name, which the audit log finds.
    pub(crate) async fn deploy(
        fixture: &Fixture,
        binary: &Path,
        name: &str,
        executions: usize,
    ) -> Result<Self, BedError> {
        let options = LambdaOptions {
            binary: binary.to_owned(),
            function_name: name.to_owned(),
            reserved_concurrency: Some(executions),
            // Waits of the queue last as long as on Lambda.
            wait_factor: 1.0,
            ..LambdaOptions::default()
        };
        let world = &fixture.world;
        let lambda = Lambda::start(world, options).await?;
        let endpoint = fixture.proxy.url();
        world.aws_side().override_endpoint(lambda.access_key_id(), &world.cluster, Some(&endpoint), None).await?;
        let self_test: Value = serde_json::from_str(SELF_TEST).expect("a sample is JSON");
        lambda.invoke(&self_test).await;
        lambda.recycle();
        Ok(Self { lambda, user: format!("assumed-role/spillway-drain/{name}") })
    }

    /// Drains a scene. The processes stay, so that the next drain is warm.
    pub(crate) async fn drain(&self, fixture: &Fixture, scene: &Scene) -> Result<Figures, BedError> {
        fixture.world.aws_side().divide_quotas(self.lambda.access_key_id(), scene.case.part).await?;
        let notices = fixture.notices(scene).await?;

        let start = fixture.begin();
        let invocations = notices.into_iter().map(|notice| self.lambda.invoke_async(notice));
        let deliveries = try_join_all(invocations).await?;
        let at = Timestamp::now();

        let usage = self.lambda.usage().map_err(BedError::io("read the function's usage"))?;
        let failed = deliveries.iter().filter(|delivery| delivery.last.drained().is_err()).count();
        let access_key_id = Some(self.lambda.access_key_id());
        fixture.end(scene, start, End { at, user: self.user.clone(), access_key_id, usage, failed }).await
    }
}

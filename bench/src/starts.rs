//! Size of a build, its starts, and the way to its first cordon.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};
use spillway_bed::BedError;
use spillway_bed::lambda::{InvocationError, Lambda, LambdaOptions};
use spillway_bed::setup::Setup;

use crate::Programs;
use crate::case::{Case, Tool};
use crate::fixture::Fixture;
use crate::function::Function;

/// Bytes of a build.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Size {
    pub(crate) tool: Tool,
    pub(crate) binary: u64,
    /// Bytes of a zip archive with this file alone.
    pub(crate) zipped: u64,
}

/// A turn of starts, from the execution of a binary to its first poll of the Runtime API, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the raw results name their unit")]
pub(crate) struct Starts {
    /// A function that is `lambda_runtime` alone.
    pub(crate) empty_ms: f64,
    pub(crate) spillway_ms: f64,
    pub(crate) before_ms: Option<f64>,
}

/// The way to the cordon of an empty node, by a new process and then by the same process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) tool: Tool,
    pub(crate) round: usize,
    pub(crate) cold_ms: f64,
    pub(crate) warm_ms: f64,
    /// Calls of the warm drain.
    pub(crate) ec2: usize,
    pub(crate) eks: usize,
}

const ZIP: &str = "
import io, sys, zipfile
archive = io.BytesIO()
with zipfile.ZipFile(archive, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as file:
    file.write(sys.argv[1], 'bootstrap')
print(len(archive.getvalue()))
";

impl Size {
    pub(crate) fn of(tool: Tool, program: &Path) -> Result<Self, BedError> {
        let doing = format!("zip {}", program.display());
        let binary = program.metadata().map_err(BedError::io(&doing))?.len();
        let output = Command::new(Setup::find()?.python).args(["-c", ZIP]).arg(program).output();
        let output = output.map_err(BedError::io(&doing))?;
        let why = || std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned());
        let zipped = String::from_utf8_lossy(&output.stdout).trim().parse().map_err(|_| BedError::io(&doing)(why()))?;
        Ok(Self { tool, binary, zipped })
    }
}

impl Starts {
    /// Starts every build in turn.
    pub(crate) async fn of(programs: &Programs, turns: usize) -> Result<Vec<Self>, BedError> {
        let [empty, spillway] = [&programs.empty, &programs.drain].map(|program| alone(program));
        let before = programs.before.as_deref().map(alone);
        let mut starts = Vec::with_capacity(turns);
        for _ in 0..turns {
            let before_ms = match &before {
                Some(before) => Some(to_first_poll(before).await?),
                None => None,
            };
            let (empty_ms, spillway_ms) = (to_first_poll(&empty).await?, to_first_poll(&spillway).await?);
            starts.push(Self { empty_ms, spillway_ms, before_ms });
        }
        Ok(starts)
    }
}

/// A function without AWS: none is called before the first event.
fn alone(binary: &Path) -> Lambda {
    Lambda::without_aws(LambdaOptions { binary: binary.to_owned(), ..LambdaOptions::default() })
}

async fn to_first_poll(lambda: &Lambda) -> Result<f64, BedError> {
    let failed = |error: InvocationError| BedError::NotMeasured {
        wanted: "the time to the first poll".to_owned(),
        seen: error.to_string(),
    };
    let init = lambda.initialize().await.map_err(failed)?;
    lambda.recycle();
    Ok(init.as_secs_f64() * 1e3)
}

impl Claims {
    /// Drains two empty nodes by one process.
    pub(crate) async fn of(
        fixture: &mut Fixture,
        (tool, binary): (Tool, &Path),
        round: usize,
    ) -> Result<Self, BedError> {
        let (first, second) = (fixture.scene(EMPTY_NODE).await?, fixture.scene(EMPTY_NODE).await?);
        let function = Function::deploy(fixture, binary, &first.name, 1).await?;
        let cold = function.drain(fixture, &first).await?;
        let warm = function.drain(fixture, &second).await?;
        fixture.clear().await?;
        let ms = |cordon: Option<f64>| {
            let (wanted, found) = ("an empty node's drain".to_owned(), "no cordon".to_owned());
            let missing = BedError::NotMeasured { wanted, seen: found };
            cordon.map(|seconds| seconds * 1e3).ok_or(missing)
        };
        let (ec2, eks) = (warm.calls_of("DescribeInstances"), warm.calls_of("DescribeCluster"));
        Ok(Self { tool, round, cold_ms: ms(cold.first_cordon_s)?, warm_ms: ms(warm.first_cordon_s)?, ec2, eks })
    }
}

const EMPTY_NODE: Case = Case::new(1, 0);

//! The binaries that are measured, and what they are measured against.

use std::path::PathBuf;

use spillway_bed::BedError;
use spillway_bed::lambda::LambdaOptions;

use crate::measure::baseline;

/// Programs of `bench/baseline` that somebody built elsewhere.
#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// The empty function; the one that `cargo lambda build` makes when absent.
    #[arg(long)]
    empty: Option<PathBuf>,
    /// The bare loop; the one that `cargo lambda build` makes when absent.
    #[arg(long)]
    baseline: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) struct Programs {
    /// The product.
    pub(super) drain: PathBuf,
    /// `lambda_runtime` with nothing in it.
    pub(super) empty: PathBuf,
    /// The bare loop of evictions.
    pub(super) baseline: PathBuf,
}

impl Programs {
    pub(super) fn find(named: &Named) -> Result<Self, BedError> {
        let programs = Self {
            drain: LambdaOptions::default().binary,
            empty: named.empty.clone().map_or_else(|| baseline::built("spillway-empty"), Ok)?,
            baseline: named.baseline.clone().map_or_else(baseline::program, Ok)?,
        };
        let Self { drain, empty, baseline } = &programs;
        for (program, build) in [
            (drain, "`sam build`"),
            (empty, "`cargo lambda build --release --package spillway-baseline`"),
            (baseline, "`cargo lambda build --release --package spillway-baseline`"),
        ] {
            if !program.is_file() {
                let doing = format!("find {}; {build} makes it", program.display());
                return Err(BedError::io(doing)(std::io::ErrorKind::NotFound.into()));
            }
        }
        Ok(programs)
    }
}

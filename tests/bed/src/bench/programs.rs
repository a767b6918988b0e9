//! The binaries that are measured, and what they are measured against.

use std::path::PathBuf;

use crate::error::BedError;
use crate::lambda::LambdaOptions;
use crate::measure::bare;

/// Programs of `tests/bench` that somebody built elsewhere.
#[derive(Debug, clap::Args)]
pub struct Named {
    /// The empty function; the one that `cargo lambda build` makes when absent.
    #[arg(long)]
    empty: Option<PathBuf>,
    /// The bare loop; the one that `cargo lambda build` makes when absent.
    #[arg(long)]
    floor: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) struct Programs {
    /// The product.
    pub(super) drain: PathBuf,
    /// `lambda_runtime` with nothing in it.
    pub(super) empty: PathBuf,
    /// The bare loop of evictions.
    pub(super) floor: PathBuf,
}

impl Programs {
    pub(super) fn find(named: &Named) -> Result<Self, BedError> {
        let programs = Self {
            drain: LambdaOptions::default().binary,
            empty: named.empty.clone().map_or_else(|| bare::built("spillway-empty"), Ok)?,
            floor: named.floor.clone().map_or_else(bare::program, Ok)?,
        };
        let Self { drain, empty, floor } = &programs;
        for (program, build) in [
            (drain, "`sam build`"),
            (empty, "`cargo lambda build --release --package spillway-bench`"),
            (floor, "`cargo lambda build --release --package spillway-bench`"),
        ] {
            if !program.is_file() {
                let doing = format!("find {}; {build} makes it", program.display());
                return Err(BedError::io(doing)(std::io::ErrorKind::NotFound.into()));
            }
        }
        Ok(programs)
    }
}

//! How large the function is, as it is and as it is uploaded.

use std::process::Command;

use serde::{Deserialize, Serialize};
use spillway_bed::BedError;
use spillway_bed::setup::Setup;

use super::programs::Programs;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Size {
    /// Bytes of the binary.
    pub(super) binary: u64,
    /// Bytes of a zip archive with nothing else in it.
    pub(super) zipped: u64,
}

/// As `zip -9` does: the archive goes to a pipe, only its size is wanted.
const ZIP: &str = "
import io, sys, zipfile
archive = io.BytesIO()
with zipfile.ZipFile(archive, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as file:
    file.write(sys.argv[1], 'bootstrap')
print(len(archive.getvalue()))
";

impl Size {
    pub(super) fn of(programs: &Programs) -> Result<Self, BedError> {
        let doing = format!("zip {}", programs.drain.display());
        let binary = programs.drain.metadata().map_err(BedError::io(&doing))?.len();
        let python = Setup::find()?.python;
        let output =
            Command::new(python).args(["-c", ZIP]).arg(&programs.drain).output().map_err(BedError::io(&doing))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let why = || std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned());
        let zipped = text.trim().parse().map_err(|_| BedError::io(&doing)(why()))?;
        Ok(Self { binary, zipped })
    }
}

//! The page that a measurement prints and keeps.

use std::path::Path;
use std::process::ExitCode;

use crate::error::BedError;

/// Keeps the page in that file.
pub(crate) fn keep(page: &str, path: &Path) -> Result<(), BedError> {
    std::fs::write(path, page).map_err(BedError::io(format!("write {}", path.display())))
}

/// Prints the page, or why there is none. A goal that is not met is no error: it is a result.
pub(crate) fn tell(page: Result<String, BedError>) -> ExitCode {
    match page {
        Ok(page) => {
            println!("{page}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot measure: {}", error.story());
            ExitCode::FAILURE
        }
    }
}

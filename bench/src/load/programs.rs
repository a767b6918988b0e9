//! What the control plane's programs needed to hold the cluster.

use std::cmp::Reverse;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use spillway_bed::usage::{Usage, processes_naming};

/// A program of a world, and the most memory that it has had in use at a time, in bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) peak_memory: u64,
}

/// The programs of the world in this folder, largest first.
pub(super) fn of(folder: &Path) -> io::Result<Vec<Program>> {
    let mut programs = Vec::new();
    for process in processes_naming(folder)? {
        let program = process.command.split('\0').next().and_then(|path| Path::new(path).file_name());
        if let Some(name) = program {
            let name = name.to_string_lossy().into_owned();
            programs.push(Program { name, peak_memory: Usage::of(process.id)?.peak_memory });
        }
    }
    programs.sort_by_key(|program| Reverse(program.peak_memory));
    Ok(programs)
}

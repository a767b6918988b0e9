//! What the control plane's programs needed to hold the cluster.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use spillway_bed::usage::Usage;

/// A program of a world, and the most memory that it has had in use at a time, in bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) peak_memory: u64,
}

/// The programs of the world in this folder, largest first: the folder is in their command lines.
pub(super) fn of(folder: &Path) -> io::Result<Vec<Program>> {
    let folder = folder.to_string_lossy();
    let mut programs = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that has ended meanwhile is none of a world that stands.
        let command = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let name = command.split('\0').next().and_then(|path| Path::new(path).file_name());
        if let Some(name) = name.filter(|_| command.contains(&*folder)) {
            let name = name.to_string_lossy().into_owned();
            programs.push(Program { name, peak_memory: Usage::of(id)?.peak_memory });
        }
    }
    programs.sort_by_key(|program| Reverse(program.peak_memory));
    Ok(programs)
}

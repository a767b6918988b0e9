//! Becomes another program that dies with its parent, whatever ends the parent.
//!
//! The signal follows the parent's *thread*, so the supervisor starts everything from its main one.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::error::BedError;
use crate::world;

/// The begin of a command line: what is added to it runs guarded by the `spillway-bed` program.
pub fn command() -> Result<Command, BedError> {
    let mut command = Command::new(world::program()?);
    command.arg("guard").arg(std::process::id().to_string());
    Ok(command)
}

/// Returns only when the program cannot be run.
#[must_use]
pub fn exec(command: &[OsString], parent: Option<i32>) -> io::Error {
    #[cfg(target_os = "linux")]
    if let Err(error) = die_with(parent) {
        return error;
    }
    let Some((program, arguments)) = command.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "there is no command to guard");
    };
    Command::new(program).args(arguments).exec()
}

#[cfg(target_os = "linux")]
fn die_with(parent: Option<i32>) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    // A parent that died before the line above sends no signal any more.
    match parent {
        Some(parent) if nix::unistd::getppid().as_raw() != parent => Err(io::Error::other("the parent is gone")),
        _ => Ok(()),
    }
}

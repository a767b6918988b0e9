//! `spillway-bed`: the supervisor of a world (`up OPTIONS`), and the guard of each of its programs (`guard PARENT COMMAND…`).
//! `World::start` runs the one, the supervisor the other.

use std::ffi::OsString;
use std::process::ExitCode;

use spillway_bed::{guard, supervisor};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_str().unwrap_or_default()).collect();
    match words.as_slice() {
        ["up", options] => match serde_json::from_str(options) {
            Ok(options) => return supervisor::up(options).await,
            Err(error) => eprintln!("spillway-bed up: {error}"),
        },
        ["guard", parent, name, ..] => {
            eprintln!("cannot run {name}: {}", guard::exec(&arguments[2..], parent.parse().ok()));
        }
        _ => eprintln!("spillway-bed is run by tests: World::start"),
    }
    ExitCode::FAILURE
}

//! Prints messages about sample drains without sending them. See `tools/spillway preview --help`.

use std::io::{self, Read as _};
use std::process::ExitCode;

use spillway_announce::preview::Preview;

const USAGE: &str = "usage: announce-preview [--template FILE | --document FILE | --format slack|json|text]

Prints the messages about sample drains and sends nothing. FILE is a Go template, or the document of the webhook;
- reads standard input. Exit code 1: a message cannot be rendered.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let preview = match arguments.as_slice() {
        [] => Preview::named("slack"),
        ["--format", name] => Preview::named(name),
        ["--template", file] => read(file).and_then(|text| Preview::of_template(&text)),
        ["--document", file] => read(file).and_then(|text| Preview::of_document(&text)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(if arguments == ["--help"] { 0 } else { 2 });
        }
    };
    match preview.and_then(|preview| preview.render()) {
        Ok(shown) => {
            print!("{shown}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn read(file: &str) -> Result<String, String> {
    let mut text = String::new();
    let read = if file == "-" {
        io::stdin().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(file).map(|read| text = read)
    };
    read.map(|()| text).map_err(|error| format!("cannot read {file}: {error}"))
}

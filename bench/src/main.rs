//! `spillway-bench`: measures the drain function on the test bed, and writes a page of `docs/measured/` with its results.
//!
//! # Layout
//! * [`bench`] measures one drain against a bare loop of evictions, [`peers`] sets it beside other tools, in a [`storm`] too, [`load`] counts
//!   what it costs in a large cluster;
//! * [`measure`] is what they share: the machine, statistics, requirements, and how a page is kept.
//!
//! What the function is measured against is built as the function is: the crate in `baseline/`.

mod bench;
mod load;
mod measure;
mod peers;
#[cfg(test)]
mod test_support;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::BenchResults;
use crate::load::LoadResults;
use crate::measure::report;
use crate::peers::PeersResults;
use crate::peers::storm::{self, StormResults};

/// Measures the drain function, and writes a page of docs/measured/ with its raw results beside it.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures how fast and how small the function is: docs/measured/bench.md.
    Bench(bench::BenchOptions),
    /// Measures it beside `kubectl drain` and aws-node-termination-handler: docs/measured/peers.md.
    Peers(peers::PeersOptions),
    /// Measures what a drain costs in a large cluster: docs/measured/load.md.
    Load(load::LoadOptions),
    /// Measures a storm of notices: the page `storm` beside the others.
    Storm(storm::StormOptions),
    /// Writes the pages of docs/measured/ once more from the raw results beside them; measures nothing.
    Render,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bench(options) => bench::run(options).await,
        Command::Peers(options) => peers::run(options).await,
        Command::Load(options) => load::run(options).await,
        Command::Storm(options) => storm::run(options).await,
        Command::Render => render_all(),
    }
}

fn render_all() -> ExitCode {
    let rendered = report::render::<BenchResults>()
        .and_then(|()| report::render::<PeersResults>())
        .and_then(|()| report::render::<LoadResults>())
        .and_then(|()| report::render::<StormResults>());
    report::tell(rendered.map(|()| "every page with raw results is rendered"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::report::Report;

    /// A page of before there were raw results does not name any. What was never measured has neither.
    fn assert_rendered_from_its_raw_results<R: Report>() {
        let path = report::documents().join(R::FILE);
        let raw = std::fs::read_to_string(path.with_extension("json"));
        let Ok(page) = std::fs::read_to_string(path.with_extension("md")) else {
            assert!(raw.is_err(), "the page of {} is gone", R::FILE);
            return;
        };
        match raw {
            Ok(raw) => assert_eq!(
                page,
                report::rendered::<R>(&raw).expect("the raw results can be read"),
                "docs/measured/{0}.md is not what docs/measured/{0}.json says; `spillway-bench render` writes it",
                R::FILE
            ),
            Err(_) => assert!(!page.contains(&format!("{}.json", R::FILE)), "the raw results of {} are gone", R::FILE),
        }
    }

    #[test]
    fn every_page_is_rendered_from_the_raw_results_beside_it() {
        assert_rendered_from_its_raw_results::<BenchResults>();
        assert_rendered_from_its_raw_results::<PeersResults>();
        assert_rendered_from_its_raw_results::<LoadResults>();
        assert_rendered_from_its_raw_results::<StormResults>();
    }
}

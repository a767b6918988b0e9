//! The page: what was wanted and found, each drain's requests, and how they were counted.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;

use super::programs::Program;
use super::{Cost, Load, MANY_PODS, PODS, Results};
use crate::measure::build;
use crate::measure::machine::{self, Machine};

pub(super) fn page(results: &Results, machine: &Machine, binary: &Path) -> String {
    let Results { busy, filler, load, many, programs } = results;
    let Load { nodes, poured, small, large, searched } = load;
    let mut text = format!(
        "# In a large cluster\n\
        \n\
        Written by `make load`, which measures it all anew; nothing here is typed by hand.\n\
        \n\
        * {date}\n\
        * {machine}; {quiet}\n\
        * measured: {build}\n\
        * the cluster: {nodes} nodes, each some 17 KB as a kubelet's is, and {pods} pods; it held, and stood after {poured:.0} s\n\
        * what it needed at most: {needed}\n\
        \n\
        The same drain three times, by a function that is cold: a spot notice for a node of {PODS} pods that exit at\n\
        once. *Searched*: the node has a name that no guess hits and that comes last of all, so that every page of\n\
        nodes is looked at. The last column is a node of {MANY_PODS} pods in the large cluster.\n\
        \n\
        | | small cluster | large cluster | large, searched | large, {MANY_PODS} pods |\n\
        | --- | --- | --- | --- | --- |\n",
        date = Timestamp::now().strftime("%Y-%m-%d"),
        machine = machine.in_words(),
        quiet = machine::quiet_in_words(busy),
        build = build::in_words(binary),
        pods = filler.pods,
        poured = poured.as_secs_f64(),
        needed = programs.iter().map(in_words).collect::<Vec<_>>().join(", "),
    );
    let mut row = |what: &str, value: &dyn Fn(&Cost) -> String| {
        let _ =
            writeln!(text, "| {what} | {} | {} | {} | {} |", value(small), value(large), value(searched), value(many));
    };
    row("requests", &|cost| cost.all().to_string());
    let requests: BTreeSet<&String> =
        [small, large, searched, many].iter().flat_map(|cost| cost.requests.keys()).collect();
    for request in requests {
        row(&format!("of them {request}"), &|cost| cost.count(request).to_string());
    }
    row("bytes through the connection", &|cost| cost.bytes.to_string());
    row("peak memory", &|cost| mib(cost.peak_memory));
    row("event to answer, ms", &|cost| cost.took.as_millis().to_string());
    text + &how()
}

fn in_words(program: &Program) -> String {
    format!("{} {}", program.name, mib(program.peak_memory))
}

fn mib(bytes: u64) -> String {
    let tenths = bytes * 10 / (1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

fn how() -> String {
    "\n## How it is measured\n\
    \n\
    `make load`, or `spillway-bed load --nodes … --pods …` for another size. A real kube-apiserver with a real\n\
    etcd holds all objects; of the cluster's own programs only kwok leaves the nodes and pods alone. Requests come\n\
    from the API server's audit log, bytes from a TCP proxy in front of it (TLS handshake, watch and headers are in\n\
    them), memory from the kernel (`VmHWM`). A node's image list, conditions and labels are as long as a kubelet\n\
    makes them; a pod is small. `tests/e2e/tests/load.rs` holds the counts in each run of `make test`, with 500 nodes\n\
    and 5,000 pods.\n"
        .to_owned()
}

//! The page: each drain's requests, and how they were counted.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use spillway_bed::load::{Cost, Load, PODS};

use super::programs::Program;
use super::{LoadResults, MANY_PODS};
use crate::measure::report::Report;

impl Report for LoadResults {
    const FILE: &'static str = "load";

    fn page(&self) -> String {
        page(self)
    }
}

fn page(results: &LoadResults) -> String {
    let LoadResults { circumstances, filler, load, many, programs } = results;
    let Load { nodes, poured, small, large, searched } = load;
    let mut text = circumstances.head("In a large cluster", LoadResults::FILE);
    let _ = write!(
        text,
        "* the cluster: {nodes} nodes, each some 17 KB as a kubelet's is, and {pods} pods; it held, and stood after {poured:.0} s\n\
        * what it needed at most: {needed}\n\
        \n\
        The same drain three times, each once and by a function that is cold: a spot notice for a node of {PODS} pods that\n\
        exit at once. The first, in the small cluster, is the first of all in its world. *Searched*: the node has a name that\n\
        no guess hits and that comes last of all, so that every page of nodes is looked at. The last column is a node of\n\
        {MANY_PODS} pods in the large cluster.\n\
        \n\
        | | small cluster | large cluster | large, searched | large, {MANY_PODS} pods |\n\
        | --- | --- | --- | --- | --- |\n",
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
    A real kube-apiserver with a real etcd holds all objects (`NODES=` and `PODS=` are another size); of the cluster's own\n\
    programs only kwok leaves the nodes and pods alone. Requests come from the API server's audit log, bytes from a TCP\n\
    proxy in front of it (TLS handshake, watch and headers are in them), memory from the kernel (`VmHWM`). A node's image\n\
    list, conditions and labels are as long as a kubelet makes them; a pod is small. `tests/e2e/tests/large_cluster.rs` holds the\n\
    counts in each run of `make test`, with 500 nodes and 5,000 pods.\n"
        .to_owned()
}

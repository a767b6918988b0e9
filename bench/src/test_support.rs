//! Results for tests.

use crate::case::{FULL_NODE, Tool};
use crate::circumstances::Circumstances;
use crate::figures::{Figures, Traffic};
use crate::machine::Rests;
use crate::results::{Results, Run};
use crate::starts::{Claims, Size, Starts};

/// Six rounds that meet every requirement.
pub(crate) fn results() -> Results {
    let figures = |last_eviction_s| Figures {
        last_cordon_s: Some(0.1),
        last_eviction_s: Some(last_eviction_s),
        end_s: 5.0,
        opening: ["patch nodes", "list pods", "create pods/eviction"].map(str::to_owned).into(),
        for_pods: 110,
        other_requests: 3,
        traffic: Traffic { connections: 1, client_hellos: 1, bytes: 2_000_000 },
        peak_memory: 16 << 20,
        ..Figures::default()
    };
    let run = |tool, round, last_s| Run { case: FULL_NODE, tool, round, figures: figures(last_s) };
    let claims = |round| Claims { tool: Tool::Spillway, round, cold_ms: 80.0, warm_ms: 66.0, ec2: 1, eks: 0 };
    Results {
        circumstances: Circumstances {
            command: "make bench RUNS=6".to_owned(),
            commit: "commit 0123456789ab".to_owned(),
            sources: "ba9876543210".to_owned(),
            date: "2026-11-28".to_owned(),
            build: "a release build".to_owned(),
            machine: "2 cores (Z80)".to_owned(),
            busy: vec![0.01, 0.02],
            took_s: 61,
        },
        rests: Rests::default(),
        sizes: vec![Size { tool: Tool::Spillway, binary: 10_200_000, zipped: 3_980_000 }],
        starts: vec![Starts { empty_ms: 1.2, spillway_ms: 2.5, before_ms: None }; 30],
        claims: (0..6).map(claims).collect(),
        runs: (0..6).flat_map(|round| [run(Tool::Spillway, round, 0.3), run(Tool::Baseline, round, 0.25)]).collect(),
        failed: Vec::new(),
        nth: None,
        beside: Vec::new(),
        replacement: None,
    }
}

//! Raw results, from which the page is rendered.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use spillway_bed::BedError;

use crate::case::{Case, Tool};
use crate::circumstances::{Circumstances, own_file};
use crate::figures::Figures;
use crate::machine::Rests;
use crate::replacement::Replacement;
use crate::starts::{Claims, Size, Starts};
use crate::statistics::{median, to_f64};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) circumstances: Circumstances,
    pub(crate) rests: Rests,
    pub(crate) sizes: Vec<Size>,
    pub(crate) starts: Vec<Starts>,
    pub(crate) claims: Vec<Claims>,
    pub(crate) runs: Vec<Run>,
    pub(crate) failed: Vec<Failed>,
    /// Version of NTH, if `NTH=` named a binary.
    pub(crate) nth: Option<String>,
    /// Last measurements with NTH; carried over by a run without NTH.
    pub(crate) beside: Vec<Beside>,
    #[serde(default)]
    pub(crate) replacement: Option<Replacement>,
}

/// Drain of a case by a tool. The drains of a round follow each other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) case: Case,
    pub(crate) tool: Tool,
    pub(crate) round: usize,
    #[serde(flatten)]
    pub(crate) figures: Figures,
}

/// A drain without figures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) case: Case,
    pub(crate) tool: Tool,
    pub(crate) round: usize,
    pub(crate) why: String,
}

/// A measurement beside other tools.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Beside {
    /// Commit, date, machine and noise, in words.
    pub(crate) circumstances: String,
    pub(crate) rows: Vec<BesideRow>,
}

/// Medians of one tool's drains of one case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BesideRow {
    pub(crate) case: Case,
    /// Name and version.
    pub(crate) tool: String,
    pub(crate) rounds: usize,
    pub(crate) cordoned_in_window: usize,
    pub(crate) evicted_in_window: usize,
    pub(crate) last_cordon_s: Option<f64>,
    pub(crate) last_eviction_s: Option<f64>,
    pub(crate) end_s: f64,
    pub(crate) requests_a_pod: f64,
    pub(crate) peak_memory: u64,
}

impl Results {
    /// Cases in the order of their measurement.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let mut cases: Vec<Case> = self.runs.iter().map(|run| run.case).collect();
        cases.dedup();
        cases
    }

    /// Cases with all of AWS' quotas.
    pub(crate) fn whole_cases(&self) -> impl Iterator<Item = Case> {
        self.cases().into_iter().filter(|case| case.part == 1)
    }

    pub(crate) fn of(&self, case: Case, tool: Tool) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.case == case && run.tool == tool)
    }

    /// Ratios of two tools, each within a round.
    pub(crate) fn ratios(
        &self,
        case: Case,
        (tool, other): (Tool, Tool),
        value: impl Fn(&Figures) -> Option<f64>,
    ) -> Vec<f64> {
        let in_round = |round: usize| self.of(case, other).find(|of| of.round == round);
        let ratio = |run: &Run| Some(value(&run.figures)? / value(&in_round(run.round)?.figures)?);
        self.of(case, tool).filter_map(ratio).collect()
    }

    /// Sets [`Results::beside`] if NTH was measured.
    pub(crate) fn compare_with_nth(&mut self) {
        let Some(version) = &self.nth else { return };
        let mut rows = Vec::new();
        for case in self.whole_cases() {
            for (tool, name) in [(Tool::Spillway, "Spillway".to_owned()), (Tool::Nth, format!("NTH {version}, tuned"))]
            {
                let figures: Vec<&Figures> = self.of(case, tool).map(|run| &run.figures).collect();
                rows.extend((!figures.is_empty()).then(|| BesideRow::of(case, name, &figures)));
            }
        }
        let circumstances = format!("{}, {}", self.circumstances.commit, self.circumstances.in_words());
        self.beside = vec![Beside { circumstances, rows }];
    }
}

impl BesideRow {
    fn of(case: Case, tool: String, figures: &[&Figures]) -> Self {
        let all = |value: fn(&Figures) -> Option<f64>| -> Option<f64> {
            let values = figures.iter().map(|figures| value(figures)).collect::<Option<Vec<f64>>>();
            values.map(|values| median(&values))
        };
        Self {
            case,
            tool,
            rounds: figures.len(),
            cordoned_in_window: figures.iter().map(|figures| figures.cordoned_in_window).min().unwrap_or(0),
            evicted_in_window: figures.iter().map(|figures| figures.evicted_in_window).min().unwrap_or(0),
            last_cordon_s: all(|figures| figures.last_cordon_s),
            last_eviction_s: all(|figures| figures.last_eviction_s),
            end_s: all(|figures| Some(figures.end_s)).unwrap_or_default(),
            requests_a_pod: all(|figures| Some(to_f64(figures.for_pods))).unwrap_or_default()
                / to_f64(case.nodes * case.pods),
            peak_memory: figures.iter().map(|figures| figures.peak_memory).max().unwrap_or(0),
        }
    }
}

/// Path of the page or of its raw results in this repository.
pub(crate) fn kept(ending: &str) -> PathBuf {
    own_file("../docs/contributing/measured/bench").with_extension(ending)
}

/// Reads raw results.
pub(crate) fn read(path: &Path) -> Result<Results, BedError> {
    let reading = || BedError::io(format!("read {}", path.display()));
    let raw = std::fs::read_to_string(path).map_err(reading())?;
    serde_json::from_str(&raw).map_err(io::Error::other).map_err(reading())
}

/// Raw results as JSON, with one object of a list in a line.
pub(crate) fn raw(results: &impl Serialize) -> serde_json::Result<String> {
    let results = serde_json::to_value(results)?;
    let fields = results.as_object().into_iter().flatten();
    let lines = |items: &Vec<Value>| items.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
    let fields = fields.map(|(name, value)| match value {
        Value::Array(items) if items.iter().any(Value::is_object) => format!("{}: [\n{}\n]", json!(name), lines(items)),
        other => format!("{}: {other}", json!(name)),
    });
    Ok(format!("{{\n{}\n}}\n", fields.collect::<Vec<_>>().join(",\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::FULL_NODE;

    #[test]
    fn raw_results_have_an_object_a_line() {
        let results = json!({"runs": [{"a": 1}, {"a": 2}], "busy": [0.1, 0.2], "nth": "v1"});
        let raw = raw(&results).expect("JSON");
        assert_eq!(raw.lines().count(), 8, "{raw}");
        assert_eq!(serde_json::from_str::<Value>(&raw).expect("JSON"), results);
    }

    #[test]
    fn row_beside_has_medians_and_the_worst_counts() {
        let figures = |last_cordon_s, evicted_in_window| Figures {
            last_cordon_s,
            evicted_in_window,
            end_s: 5.0,
            for_pods: 220,
            ..Figures::default()
        };
        let (first, second) = (figures(Some(1.0), 110), figures(Some(3.0), 100));
        let row = BesideRow::of(FULL_NODE, "tool".to_owned(), &[&first, &second]);
        assert_eq!((row.last_cordon_s, row.evicted_in_window), (Some(1.0), 100));
        assert_eq!((row.last_eviction_s, row.end_s, row.requests_a_pod), (None, 5.0, 2.0));
    }
}

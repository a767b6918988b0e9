//! A requirement, what was measured, and what follows from it.

use std::fmt::Write as _;

use super::statistics::{FEWEST, least, median, median_interval, most};

/// Something that is required of the product.
#[derive(Debug)]
pub(crate) struct Requirement {
    pub(crate) what: String,
    pub(crate) required: String,
    pub(crate) measured: Measured,
    pub(crate) verdict: Verdict,
    /// What would be measured with the baseline in the product's place.
    pub(crate) of_baseline: Option<Measured>,
}

/// What was measured, in three cells of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) value: String,
    /// In which the median lies with 95 % confidence.
    pub(crate) interval: String,
    /// From the least to the most.
    pub(crate) range: String,
}

/// The result of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// Not measured; or more runs, or a quieter machine, might say.
    Undecided,
}

impl Requirement {
    /// Missed, whatever the drains came to that did not fail, if one did.
    pub(crate) fn unless_failed(mut self, failed: usize) -> Self {
        if failed > 0 {
            let drains = if failed == 1 { "drain" } else { "drains" };
            let _ = write!(self.measured.value, "; {failed} {drains} failed");
            self.verdict = Verdict::Missed;
        }
        self
    }
}

impl Measured {
    pub(crate) fn text(value: impl Into<String>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }

    pub(crate) fn nothing() -> Self {
        Self::text("not measured")
    }

    /// The median of values, and as much about it as their number allows.
    pub(crate) fn of(values: &[f64], digits: usize, unit: &str) -> Self {
        if values.is_empty() {
            return Self::nothing();
        }
        let from_to = |from: f64, to: f64| format!("{from:.digits$} to {to:.digits$}");
        let (from, to) = median_interval(values);
        Self {
            value: format!("{:.digits$}{unit}", median(values)),
            interval: if values.len() < FEWEST { String::new() } else { from_to(from, to) },
            range: if values.len() == 1 { String::new() } else { from_to(least(values), most(values)) },
        }
    }

    fn in_cells(&self) -> String {
        let cells = [&self.value, &self.interval, &self.range].map(|cell| if cell.is_empty() { "–" } else { cell });
        cells.join(" | ")
    }
}

impl Verdict {
    pub(crate) fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::Missed }
    }

    /// By the interval in which the median lies with 95 % confidence.
    pub(crate) fn at_most(limit: f64, values: &[f64]) -> Self {
        Self::of_median(values, |end| end <= limit)
    }

    /// By the interval in which the median lies with 95 % confidence.
    pub(crate) fn at_least(limit: f64, values: &[f64]) -> Self {
        Self::of_median(values, |end| end >= limit)
    }

    fn of_median(values: &[f64], is_met: impl Fn(f64) -> bool) -> Self {
        if values.len() < FEWEST {
            return Self::Undecided;
        }
        let (low, high) = median_interval(values);
        if is_met(low) == is_met(high) { Self::of(is_met(low)) } else { Self::Undecided }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "**missed**",
            Self::Undecided => "**undecided**",
        }
    }
}

/// The requirements as a part of a page.
pub(crate) fn table(requirements: &[Requirement]) -> String {
    let mut text = "## Requirements\n\
        \n\
        | requirement | | measured | 95 % confidence interval | least to most | result |\n\
        | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for Requirement { what, required, measured, verdict, of_baseline } in requirements {
        let _ = writeln!(text, "| {what} | {required} | {} | {} |", measured.in_cells(), verdict.in_words());
        if let Some(baseline) = of_baseline {
            let _ = writeln!(text, "| *with the evictions alone in Spillway's place* | | {} | |", baseline.in_cells());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six runs, of which the least and the most are the ends of the median's interval.
    fn six(least: f64, most: f64) -> [f64; 6] {
        [least, most, least, most, least, most]
    }

    #[test]
    fn a_limit_within_the_medians_interval_decides_nothing() {
        assert_eq!(Verdict::at_most(1.25, &six(1.1, 1.25)), Verdict::Met);
        assert_eq!(Verdict::at_most(1.25, &six(1.1, 1.3)), Verdict::Undecided);
        assert_eq!(Verdict::at_least(30.0, &six(30.0, 42.0)), Verdict::Met);
        assert_eq!(Verdict::at_least(30.0, &six(29.0, 42.0)), Verdict::Undecided);
        assert_eq!(Verdict::at_least(30.0, &six(28.0, 29.0)), Verdict::Missed);
    }

    #[test]
    fn five_runs_decide_nothing_however_good_they_are() {
        assert_eq!(Verdict::at_least(30.0, &[300.0; 5]), Verdict::Undecided);
        assert_eq!(Verdict::at_least(30.0, &[300.0; 6]), Verdict::Met);
    }

    #[test]
    fn an_interval_is_told_only_of_enough_values() {
        let measured = |values: &[f64]| Measured::of(values, 1, " ×").in_cells();
        assert_eq!(measured(&[]), "not measured | – | –");
        assert_eq!(measured(&[2.0]), "2.0 × | – | –");
        assert_eq!(measured(&[3.0, 1.0, 2.0, 2.0, 2.0]), "2.0 × | – | 1.0 to 3.0");
        assert_eq!(measured(&[3.0, 1.0, 2.0, 2.0, 2.0, 2.0]), "2.0 × | 1.0 to 3.0 | 1.0 to 3.0");
    }

    #[test]
    fn one_failed_drain_misses_a_requirement_that_the_others_meet() {
        let requirement = Requirement {
            what: "last eviction".to_owned(),
            required: "at least 30 ×".to_owned(),
            measured: Measured::of(&[40.0; 6], 0, " ×"),
            verdict: Verdict::Met,
            of_baseline: None,
        };
        let requirement = requirement.unless_failed(1);
        assert_eq!(
            (requirement.measured.value.as_str(), requirement.verdict),
            ("40 ×; 1 drain failed", Verdict::Missed)
        );
    }
}

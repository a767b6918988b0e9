//! A goal, what was found, and what follows from it.

use std::fmt::Write as _;

use super::statistics::{FEWEST, median_interval};

#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) what: String,
    pub(crate) wanted: String,
    pub(crate) found: String,
    pub(crate) verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    NotMet,
    /// Not measured; or more runs, or a quieter machine, might say.
    Undecided,
}

impl Verdict {
    pub(crate) fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::NotMet }
    }

    /// By the interval in which the median lies with 95 % confidence.
    pub(crate) fn at_most(limit: f64, values: &[f64]) -> Self {
        Self::of_median(values, |end| end <= limit)
    }

    /// Likewise.
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
            Self::NotMet => "**not met**",
            Self::Undecided => "**undecided**",
        }
    }
}

/// The goals as a part of a page.
pub(crate) fn table(goals: &[Goal]) -> String {
    let mut text = "## What was wanted\n\n| | wanted | found | |\n| --- | --- | --- | --- |\n".to_owned();
    for Goal { what, wanted, found, verdict } in goals {
        let _ = writeln!(text, "| {what} | {wanted} | {found} | {} |", verdict.in_words());
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
        assert_eq!(Verdict::at_least(30.0, &six(28.0, 29.0)), Verdict::NotMet);
    }

    #[test]
    fn five_runs_decide_nothing_however_good_they_are() {
        assert_eq!(Verdict::at_least(30.0, &[300.0; 5]), Verdict::Undecided);
        assert_eq!(Verdict::at_least(30.0, &[300.0; 6]), Verdict::Met);
    }
}

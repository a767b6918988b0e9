//! Medians of repeated measurements, their confidence intervals, and verdicts. Pure.

/// Fewer values have no 95 % confidence interval: five coins fall alike in 6 % of all cases, six in 3 %.
pub(crate) const FEWEST: usize = 6;

/// Result of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// No measurement, fewer than [`FEWEST`] rounds, or a limit within the confidence interval.
    Undecided,
}

impl Verdict {
    pub(crate) fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::Missed }
    }

    /// Judges a limit by the confidence interval of the median.
    pub(crate) fn of_median(values: &[f64], is_met: impl Fn(f64) -> bool) -> Self {
        if values.len() < FEWEST {
            return Self::Undecided;
        }
        let (low, high) = median_interval(values);
        if is_met(low) == is_met(high) { Self::of(is_met(low)) } else { Self::Undecided }
    }

    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "**missed**",
            Self::Undecided => "**undecided**",
        }
    }
}

/// Middle value; the lower one of an even number, so that a count stays a count.
pub(crate) fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    sorted[(sorted.len() - 1) / 2]
}

pub(crate) fn least(values: &[f64]) -> f64 {
    sorted(values)[0]
}

pub(crate) fn most(values: &[f64]) -> f64 {
    sorted(values)[values.len() - 1]
}

/// Values between which the median of many more rounds lies with 95 % confidence, by the sign test.
pub(crate) fn median_interval(values: &[f64]) -> (f64, f64) {
    const EACH_SIDE: f64 = 0.025;
    let sorted = sorted(values);
    let rounds = sorted.len();
    // Probability of exactly, and of at most, `below` values below the median.
    let mut exactly = 0.5_f64.powi(i32::try_from(rounds).unwrap_or(i32::MAX));
    let mut at_most = 0.0;
    let mut rank = 0;
    for below in 0..rounds {
        at_most += exactly;
        if at_most > EACH_SIDE {
            break;
        }
        rank = below;
        exactly *= to_f64(rounds - below) / to_f64(below + 1);
    }
    (sorted[rank], sorted[rounds - 1 - rank])
}

#[expect(clippy::cast_precision_loss, reason = "measured counts are far below 2^52")]
pub(crate) fn to_f64(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(u64::MAX) as f64
}

fn sorted(values: &[f64]) -> Vec<f64> {
    assert!(!values.is_empty(), "a statistic has at least one value");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_one_of_the_values() {
        let medians = [median(&[9.0, 1.0, 5.0]), median(&[4.0, 1.0, 3.0, 2.0]), median(&[7.0])];
        assert_eq!(medians.map(f64::to_bits), [5.0_f64, 2.0, 7.0].map(f64::to_bits));
        assert_eq!((least(&[3.0, 1.0, 2.0]), most(&[3.0, 1.0, 2.0])), (1.0, 3.0));
    }

    #[test]
    fn median_interval_narrows_with_more_rounds() {
        let rounds = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(median_interval(&rounds(5)), (1.0, 5.0));
        // The tables of the sign test: the 4th of 15 from either end, the 14th of 40.
        assert_eq!(median_interval(&rounds(15)), (4.0, 12.0));
        assert_eq!(median_interval(&rounds(40)), (14.0, 27.0));
    }

    #[test]
    fn limit_within_the_interval_is_undecided() {
        let six = |low: f64, high: f64| [low, high, low, high, low, high];
        let at_most = |values: &[f64]| Verdict::of_median(values, |end| end <= 1.25);
        assert_eq!(at_most(&six(1.1, 1.25)), Verdict::Met);
        assert_eq!(at_most(&six(1.1, 1.3)), Verdict::Undecided);
        assert_eq!(at_most(&six(1.3, 1.4)), Verdict::Missed);
        assert_eq!(at_most(&[1.0; 5]), Verdict::Undecided);
    }
}

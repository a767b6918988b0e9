//! The median of many runs, its confidence interval, and how far they spread.

/// With fewer, nothing is said of a median with 95 % confidence: five coins fall alike in 6 % of all cases, six in 3 %.
pub(crate) const FEWEST: usize = 6;

/// The middle of an odd number of values; the lower of the two middles of an even one. It is one of
/// the values, so that a count stays a count.
pub(crate) fn median<T: PartialOrd + Copy>(values: &[T]) -> T {
    let sorted = sorted(values);
    sorted[(sorted.len() - 1) / 2]
}

/// The values between which the median of many more runs would lie, with 95 % confidence, whatever
/// their distribution: a run is above it or below it like a coin (the sign test). With fewer than [`FEWEST`]
/// it is from the least value to the most, and says nothing.
pub(crate) fn median_interval(values: &[f64]) -> (f64, f64) {
    const EACH_SIDE: f64 = 0.025;
    let sorted = sorted(values);
    let runs = sorted.len();
    // How likely it is that exactly so many runs, and at most so many, are below the median.
    let mut exactly = 0.5_f64.powi(i32::try_from(runs).unwrap_or(i32::MAX));
    let mut at_most = 0.0;
    let mut rank = 0;
    for below in 0..runs {
        at_most += exactly;
        if at_most > EACH_SIDE {
            break;
        }
        rank = below;
        exactly *= to_f64(runs - below) / to_f64(below + 1);
    }
    (sorted[rank], sorted[runs - 1 - rank])
}

/// The median, its 95 % confidence interval if there are enough values for one, and how far they spread.
pub(crate) fn in_words(values: &[f64], digits: usize, unit: &str) -> String {
    let [middle, low, high] = [median(values), least(values), most(values)].map(|value| format!("{value:.digits$}"));
    match values.len() {
        1 => format!("{middle}{unit}"),
        few if few < FEWEST => format!("{middle}{unit} ({low} to {high})"),
        _ => {
            let (from, to) = median_interval(values);
            format!("{middle}{unit}, 95 % confidence interval {from:.digits$} to {to:.digits$} ({low} to {high})")
        }
    }
}

fn to_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

pub(crate) fn least<T: PartialOrd + Copy>(values: &[T]) -> T {
    sorted(values)[0]
}

pub(crate) fn most<T: PartialOrd + Copy>(values: &[T]) -> T {
    sorted(values)[values.len() - 1]
}

fn sorted<T: PartialOrd + Copy>(values: &[T]) -> Vec<T> {
    assert!(!values.is_empty(), "something was measured");
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).expect("no measured value is not a number"));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_the_values() {
        assert_eq!(median(&[9, 1, 5]), 5);
        assert_eq!(median(&[4, 1, 3, 2]), 2);
        assert_eq!(median(&[7]), 7);
        assert_eq!((least(&[3, 1, 2]), most(&[3, 1, 2])), (1, 3));
    }

    #[test]
    fn the_medians_interval_narrows_with_more_runs() {
        let runs = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(median_interval(&runs(5)), (1.0, 5.0), "too few to say more");
        // The tables of the sign test: the 4th of 15 from either end, the 14th of 40.
        assert_eq!(median_interval(&runs(15)), (4.0, 12.0));
        assert_eq!(median_interval(&runs(40)), (14.0, 27.0));
    }

    #[test]
    fn a_confidence_interval_needs_enough_runs() {
        assert_eq!(in_words(&[2.0], 1, " ×"), "2.0 ×");
        assert_eq!(in_words(&[2.0, 1.25, 0.5], 2, ""), "1.25 (0.50 to 2.00)");
        assert_eq!(
            in_words(&[3.0, 1.0, 2.0, 2.0, 2.0, 2.0], 0, " ms"),
            "2 ms, 95 % confidence interval 1 to 3 (1 to 3)"
        );
    }
}

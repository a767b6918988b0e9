//! The middle of many runs, and how far they spread.

/// The middle of an odd number of values; the lower of the two middles of an even one. It is one of
/// the values, so that a count stays a count.
pub(crate) fn median<T: PartialOrd + Copy>(values: &[T]) -> T {
    let sorted = sorted(values);
    sorted[(sorted.len() - 1) / 2]
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
}

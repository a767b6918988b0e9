//! A picture of how the pods fared, of coloured squares: whatever happened to any has a square at least.

use crate::nodes::Tally;

/// As many as a phone shows in one line.
const MOST: usize = 20;

/// The squares, from the best end to the worst: one for a pod, or shares of the line if there are more pods.
pub(crate) fn bar(tally: &Tally) -> String {
    let Tally { clean, clamped, forced, unconfirmed, lost } = *tally;
    let counts = [("🟩", clean), ("🟨", clamped), ("🟧", forced), ("⬜", unconfirmed), ("🟥", lost)];
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let mut squares = counts.map(|(square, count)| {
        let share = if all <= MOST { count } else { (count * MOST / all).max(usize::from(count > 0)) };
        (square, share)
    });
    // What rounding took away or added is the longest share's.
    let drawn: usize = squares.iter().map(|(_, share)| share).sum();
    if let Some((_, longest)) = squares.iter_mut().max_by_key(|(_, share)| *share) {
        *longest = *longest + all.min(MOST) - drawn;
    }
    squares.iter().map(|(square, share)| square.repeat(*share)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pods_have_a_square_each() {
        let tally = Tally { clean: 3, clamped: 1, forced: 2, unconfirmed: 1, lost: 1 };
        assert_eq!(bar(&tally), "🟩🟩🟩🟨🟧🟧⬜🟥");
        assert_eq!(bar(&Tally::default()), "");
    }

    #[test]
    fn many_pods_share_the_line_and_the_one_that_was_lost_is_seen() {
        let tally = Tally { clean: 998, lost: 1, forced: 1, ..Tally::default() };
        assert_eq!(bar(&tally), "🟩".repeat(18) + "🟧🟥");
    }

    #[test]
    fn the_line_is_full_whatever_the_shares() {
        for clean in 0..60 {
            for clamped in 0..30 {
                let tally = Tally { clean, clamped, forced: 7, unconfirmed: 3, lost: 1 };
                let squares = bar(&tally).chars().count();
                assert_eq!(squares, (clean + clamped + 11).min(MOST), "{tally:?}");
            }
        }
    }
}

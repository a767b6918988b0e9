//! Draws a bar of colored squares that shows the fates of the pods.

use crate::nodes::Tally;

/// Maximum number of squares that fit into one line on a phone.
const MOST: usize = 20;

/// Returns one square for each pod, best fate first. If there are more than [`MOST`] pods, the bar is scaled down.
pub(crate) fn bar(tally: &Tally) -> String {
    let Tally { clean, clamped, forced, unconfirmed, lost } = *tally;
    let counts = [("🟩", clean), ("🟨", clamped), ("🟧", forced), ("⬜", unconfirmed), ("🟥", lost)];
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let mut squares = counts.map(|(square, count)| {
        let share = if all <= MOST { count } else { (count * MOST / all).max(usize::from(count > 0)) };
        (square, share)
    });
    // The longest share takes the rounding error.
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
    fn many_pods_fill_the_line_and_rare_fates_keep_a_square() {
        let tally = Tally { clean: 998, lost: 1, forced: 1, ..Tally::default() };
        assert_eq!(bar(&tally), "🟩".repeat(18) + "🟧🟥");
        for clean in 0..60 {
            for clamped in 0..30 {
                let tally = Tally { clean, clamped, forced: 7, unconfirmed: 3, lost: 1 };
                let squares = bar(&tally).chars().count();
                assert_eq!(squares, (clean + clamped + 11).min(MOST), "{tally:?}");
            }
        }
    }
}

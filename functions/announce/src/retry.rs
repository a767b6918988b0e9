//! Tries again what may work a moment later. What keeps failing is the queue's: it brings the events back.

use std::time::Duration;

use tokio::time::sleep;

/// Before the second attempt and the third.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// The longest pause that is granted to who asks for one: the function has a minute for all it does.
const LONGEST: Duration = Duration::from_secs(10);

/// An error that says whether the same may work a moment later.
pub(crate) trait MayPass {
    fn may_pass(&self) -> bool;

    /// How long to wait first, if the answer said so.
    fn asks_for(&self) -> Option<Duration> {
        None
    }
}

/// Makes up to three attempts. Who asks for a longer pause than there is time for gets no other attempt now.
pub(crate) async fn retried<T, E, F>(mut attempt: impl FnMut() -> F) -> Result<T, E>
where
    E: MayPass,
    F: Future<Output = Result<T, E>>,
{
    for pause in PAUSES {
        match attempt().await {
            Err(error) if error.may_pass() => match error.asks_for().unwrap_or(pause) {
                asked if asked > LONGEST => return Err(error),
                asked => sleep(asked.max(pause)).await,
            },
            answer => return answer,
        }
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[derive(Debug, PartialEq)]
    enum Trouble {
        Passing,
        PassingAfter(u64),
        Lasting,
    }

    impl MayPass for Trouble {
        fn may_pass(&self) -> bool {
            *self != Self::Lasting
        }

        fn asks_for(&self) -> Option<Duration> {
            match self {
                Self::PassingAfter(seconds) => Some(Duration::from_secs(*seconds)),
                Self::Passing | Self::Lasting => None,
            }
        }
    }

    /// What comes of attempts that fail so, and how many there were.
    async fn attempts(mut troubles: Vec<Trouble>) -> (Result<(), Trouble>, usize) {
        let mut count = 0;
        let answer = retried(|| {
            count += 1;
            let next = troubles.pop();
            async move { next.map_or(Ok(()), Err) }
        })
        .await;
        (answer, count)
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_that_passes_costs_an_attempt_and_three_are_made() {
        use Trouble::Passing;
        assert_eq!(attempts(vec![Passing, Passing]).await, (Ok(()), 3));
        assert_eq!(attempts(vec![Passing, Passing, Passing, Passing]).await, (Err(Passing), 3));
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_for_a_pause_gets_it_if_it_is_short_enough() {
        let begin = Instant::now();
        assert_eq!(attempts(vec![Trouble::PassingAfter(10), Trouble::PassingAfter(0)]).await, (Ok(()), 3));
        assert_eq!(begin.elapsed().as_millis(), 500 + 10_000, "none shorter than ours");
        assert_eq!(attempts(vec![Trouble::PassingAfter(11)]).await, (Err(Trouble::PassingAfter(11)), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_that_lasts_is_not_tried_again() {
        assert_eq!(attempts(vec![Trouble::Lasting]).await, (Err(Trouble::Lasting), 1));
    }
}

//! The way of a request, to the API server or to AWS, and of its answer: how long they take, and what goes wrong.

use std::future::pending;
use std::time::Duration;

use tokio::time::sleep;

use crate::draw::{Fate, Side};
use crate::lambda::AttemptId;
use crate::world::{Shared, World};

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Passage<A> {
    Answered(A),
    Refused,
    Unauthorized,
    Lost,
}

impl World {
    /// What becomes of a request of now.
    fn fate(&mut self, side: Side) -> Option<Fate> {
        let now = self.elapsed();
        let now =
            |trouble: &&crate::draw::Trouble| trouble.side == side && (trouble.from..trouble.until).contains(&now);
        let trouble = *self.plan.troubles.iter().find(now)?;
        self.perhaps(trouble.of_a_thousand).then_some(trouble.fate)
    }
}

/// Has a request arrive, be answered, and its answer come back; unless something goes wrong, or the attempt is killed.
pub(crate) async fn pass<A>(
    world: &Shared,
    side: Side,
    attempt: AttemptId,
    line: &str,
    act: impl FnOnce() -> A,
) -> Passage<A> {
    let (there, back, fate) = {
        let mut world = world.lock();
        let fate = world.fate(side);
        *world.requests.entry(side).or_default() += 1;
        world.note(|| {
            format!("  {attempt} {side:?} {line}{}", fate.map(|fate| format!(" [{fate:?}]")).unwrap_or_default())
        });
        let slow = if fate == Some(Fate::Slow) { world.ms(1000..14_000) } else { Duration::ZERO };
        let back = world.ms(1..40);
        (world.ms(1..40), back + slow, fate)
    };
    sleep(there).await;
    if fate == Some(Fate::LostOnTheWay) {
        return Passage::Lost;
    }
    let answer = (!matches!(fate, Some(Fate::Refused | Fate::Unauthorized))).then(act);
    let is_killed = world.lock().made_request(attempt);
    if is_killed || fate == Some(Fate::Hangs) {
        return pending().await;
    }
    sleep(back).await;
    match (answer, fate) {
        (_, Some(Fate::AnswerLost)) => Passage::Lost,
        (_, Some(Fate::Unauthorized)) => Passage::Unauthorized,
        (Some(answer), _) => Passage::Answered(answer),
        (None, _) => Passage::Refused,
    }
}

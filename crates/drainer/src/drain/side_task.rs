//! Publishes messages about a running drain without delaying the evictions.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Fuse, FusedFuture as _, LocalBoxFuture};
use spillway_core::drain::blockage::BlockageNews;
use tokio::time::{Instant, timeout_at};

/// Maximum number of concurrent requests to the API server in a side task.
pub(crate) const REQUESTS_AT_ONCE: usize = 10;

/// Timeout of one publication.
const PATIENCE: Duration = Duration::from_secs(5);

type Publish<'a> = Box<dyn Fn(BlockageNews) -> LocalBoxFuture<'a, ()> + 'a>;

/// Queue of messages to publish during a drain. A slow or failed publication does not stop the drain.
pub(crate) struct SideTask<'a> {
    doing: Fuse<LocalBoxFuture<'a, ()>>,
    /// Publications after the current one, in order.
    next: VecDeque<LocalBoxFuture<'a, ()>>,
    /// Publishes news about blocked pods. `None` if another drain of the node publishes this news.
    publish: Option<Publish<'a>>,
    /// Deadline of all publications.
    latest: Instant,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Ahead,
    Begun,
}

impl<'a> SideTask<'a> {
    /// Creates a side task that first runs the publication `what`. All publications have the deadline `latest`.
    pub(crate) fn new(what: impl Future<Output = ()> + 'a, latest: Instant) -> Self {
        let doing = bounded(what, latest).fuse();
        Self { doing, next: VecDeque::new(), publish: None, latest, stage: Stage::Ahead }
    }

    pub(crate) fn with_news(self, publish: impl Fn(BlockageNews) -> LocalBoxFuture<'a, ()> + 'a) -> Self {
        Self { publish: Some(Box::new(publish)), ..self }
    }

    pub(super) fn publish(&mut self, news: BlockageNews) {
        if let Some(publish) = &self.publish {
            self.next.push_back(bounded(publish(news), self.latest));
        }
    }

    /// Completes the current publication, or the next one in the queue. Waits forever if no publication is left. Cancel safe.
    pub(super) async fn run_next(&mut self) {
        self.stage = Stage::Begun;
        if self.doing.is_terminated()
            && let Some(next) = self.next.pop_front()
        {
            self.doing = next.fuse();
        }
        (&mut self.doing).await;
    }

    /// Returns `true` after the first call of [`Self::run_next`].
    pub(crate) fn has_begun(&self) -> bool {
        self.stage == Stage::Begun
    }

    /// Completes the current publication if it has begun. Drops the queued ones, because the receipt has the same content.
    pub(crate) async fn finish(self) {
        if self.has_begun() && !self.doing.is_terminated() {
            self.doing.await;
        }
    }
}

/// Cancels `what` after [`PATIENCE`] or at `latest`, whichever comes first.
fn bounded<'a>(what: impl Future<Output = ()> + 'a, latest: Instant) -> LocalBoxFuture<'a, ()> {
    async move {
        if timeout_at(latest.min(Instant::now() + PATIENCE), what).await.is_err() {
            tracing::warn!("a message about the drain got no answer in time; the drain goes on without it");
        }
    }
    .boxed_local()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    const LATER: Duration = Duration::from_secs(900);

    #[tokio::test(start_paused = true)]
    async fn unstarted_publication_is_dropped_a_started_one_ends_once() {
        let done = Cell::new(0);
        let work = async || {
            sleep(Duration::from_secs(1)).await;
            done.set(done.get() + 1);
        };
        SideTask::new(work(), Instant::now() + LATER).finish().await;
        assert_eq!(done.get(), 0);
        let mut side_task = SideTask::new(work(), Instant::now() + LATER);
        // The drain interrupts the side task.
        for _ in 0..3 {
            tokio::select! {
                () = side_task.run_next() => {}
                () = sleep(Duration::from_millis(400)) => {}
            }
        }
        assert_eq!(done.get(), 1);
        side_task.finish().await;
        assert_eq!(done.get(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn news_is_published_in_order_until_the_drain_ends() {
        let done = std::cell::RefCell::new(Vec::new());
        let note = |what: String| {
            let done = &done;
            async move {
                sleep(Duration::from_secs(1)).await;
                done.borrow_mut().push(what);
            }
            .boxed_local()
        };
        let news = |news: BlockageNews| note(format!("{news:?}"));
        let mut side_task = SideTask::new(note("begun".into()), Instant::now() + LATER).with_news(news);
        side_task.publish(BlockageNews::Begun(Vec::new()));
        side_task.publish(BlockageNews::Over(Vec::new()));
        side_task.publish(BlockageNews::Over(Vec::new()));
        for _ in 0..2 {
            side_task.run_next().await;
        }
        assert!(side_task.run_next().now_or_never().is_none(), "it has begun");
        side_task.finish().await;
        assert_eq!(*done.borrow(), ["begun", "Begun([])", "Over([])"]);
        let mut silent = SideTask::new(async {}, Instant::now() + LATER);
        silent.publish(BlockageNews::Over(Vec::new()));
        silent.run_next().await;
        assert!(silent.run_next().now_or_never().is_none(), "it does not publish news");
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_publication_is_given_up() {
        for (latest, given_up_after) in [(900, 5), (1, 1)] {
            let began = Instant::now();
            let mut side_task = SideTask::new(pending(), began + Duration::from_secs(latest));
            side_task.run_next().await;
            assert_eq!(began.elapsed().as_secs(), given_up_after);
        }
    }
}

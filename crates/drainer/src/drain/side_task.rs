//! What is published beside a drain, once that is under way: its first evictions are answered, and it begins to watch.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Fuse, FusedFuture as _, LocalBoxFuture};
use spillway_core::drain::blockage::BlockageNews;
use tokio::time::{Instant, timeout_at};

/// How many requests it may have under way at once, of those that a connection can carry.
pub(crate) const REQUESTS_AT_ONCE: usize = 10;

/// How long it may take, however it goes: little beside the shortest notice.
const PATIENCE: Duration = Duration::from_secs(5);

/// Publishes what a drain has news of.
type Publish<'a> = Box<dyn Fn(BlockageNews) -> LocalBoxFuture<'a, ()> + 'a>;

/// Something that is done beside a drain and takes nothing from it: it does not begin before the drain is under way, the
/// drain does not wait for it, it cannot fail, and what hangs is given up.
pub(crate) struct SideTask<'a> {
    doing: Fuse<LocalBoxFuture<'a, ()>>,
    /// What is done after that, in order.
    next: VecDeque<LocalBoxFuture<'a, ()>>,
    /// Absent: another drain publishes what there is of news.
    publish: Option<Publish<'a>>,
    /// When all is given up in any case.
    latest: Instant,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Ahead,
    Begun,
}

impl<'a> SideTask<'a> {
    /// Nothing of `what` is done yet. `latest` is when it is given up in any case.
    pub(crate) fn new(what: impl Future<Output = ()> + 'a, latest: Instant) -> Self {
        let doing = bounded(what, latest).fuse();
        Self { doing, next: VecDeque::new(), publish: None, latest, stage: Stage::Ahead }
    }

    /// Like `self`, and publishes the drain's news.
    pub(crate) fn with_news(self, publish: impl Fn(BlockageNews) -> LocalBoxFuture<'a, ()> + 'a) -> Self {
        Self { publish: Some(Box::new(publish)), ..self }
    }

    /// Has news published, after what is being done.
    pub(super) fn publish(&mut self, news: BlockageNews) {
        if let Some(publish) = &self.publish {
            self.next.push_back(bounded(publish(news), self.latest));
        }
    }

    /// Begins, or goes on. Ends once for each thing that is done.
    pub(super) async fn go_on(&mut self) {
        self.stage = Stage::Begun;
        if self.doing.is_terminated()
            && let Some(next) = self.next.pop_front()
        {
            self.doing = next.fuse();
        }
        (&mut self.doing).await;
    }

    /// Whether the drain has been under way.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage == Stage::Begun
    }

    /// Ends what has begun, when the drain is over. Beside a drain that never was under way nothing is done, and news that
    /// waited for its turn is no news: the receipt has it.
    pub(crate) async fn finish(self) {
        if self.has_begun() && !self.doing.is_terminated() {
            self.doing.await;
        }
    }
}

/// Gives up what hangs. Its time begins when it does.
fn bounded<'a>(what: impl Future<Output = ()> + 'a, latest: Instant) -> LocalBoxFuture<'a, ()> {
    async move {
        if timeout_at(latest.min(Instant::now() + PATIENCE), what).await.is_err() {
            tracing::warn!("a message about the drain got no answer in time, and is given up; the drain goes on");
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
    async fn nothing_is_done_before_the_drain_is_under_way_and_nothing_if_it_never_is() {
        let done = Cell::new(0);
        let side_task = SideTask::new(async { done.set(1) }, Instant::now() + LATER);
        side_task.finish().await;
        assert_eq!(done.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_begun_is_done_to_its_end_once() {
        let done = Cell::new(0);
        let what = async {
            sleep(Duration::from_secs(1)).await;
            done.set(done.get() + 1);
        };
        let mut side_task = SideTask::new(what, Instant::now() + LATER);
        // A drain goes on with something else again and again.
        for _ in 0..3 {
            tokio::select! {
                () = side_task.go_on() => {}
                () = sleep(Duration::from_millis(400)) => {}
            }
        }
        assert_eq!(done.get(), 1);
        side_task.finish().await;
        assert_eq!(done.get(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn news_is_published_after_what_is_being_done_in_order_and_not_once_the_drain_is_over() {
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
            side_task.go_on().await;
        }
        assert!(side_task.go_on().now_or_never().is_none(), "it has begun");
        side_task.finish().await;
        assert_eq!(*done.borrow(), ["begun", "Begun([])", "Over([])"]);
        let mut silent = SideTask::new(async {}, Instant::now() + LATER);
        silent.publish(BlockageNews::Over(Vec::new()));
        silent.go_on().await;
        assert!(silent.go_on().now_or_never().is_none(), "it has nobody to publish it");
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_is_given_up() {
        for (latest, given_up_after) in [(900, 5), (1, 1)] {
            let began = Instant::now();
            let mut side_task = SideTask::new(pending(), began + Duration::from_secs(latest));
            side_task.go_on().await;
            assert_eq!(began.elapsed().as_secs(), given_up_after);
        }
    }
}

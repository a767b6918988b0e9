//! From a seed to what happens and when: which nodes come, what AWS does with each, how its notices are delivered, and what
//! goes wrong meanwhile. Pure: one seed has one plan.

use std::num::NonZeroU32;
use std::time::Duration;

use fastrand::Rng;
use spillway_bed::faults::{Fault, Means, Step, Way};

use super::story::Story;
use super::trouble::{Network, Trouble, Whose};

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// In the order in which they begin.
    pub(super) lives: Vec<Life>,
    /// In the order in which they come.
    pub(super) troubles: Vec<(Duration, Trouble)>,
}

/// The life of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) number: usize,
    pub(super) begins: Duration,
    pub(super) story: Story,
    pub(super) pods: u32,
    /// The grace period that its pods ask for.
    pub(super) grace: Duration,
    /// How long its pods take to exit: less.
    pub(super) exits_after: Duration,
    /// How many of its pods a budget lets go, if they have one. None comes back: the others are blocked until they are forced.
    pub(super) budget: Option<u32>,
    /// How each of its notices is delivered.
    pub(super) postings: Vec<Posting>,
}

/// How EventBridge and Lambda deliver an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    /// Later than it was sent by so much.
    pub(super) delay: Duration,
    pub(super) copies: Copies,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    One,
    /// Again when the function has answered.
    Again,
    /// Twice at the same moment.
    AtOnce,
}

impl Posting {
    pub(super) const PROMPT: Self = Self { delay: Duration::ZERO, copies: Copies::One };
}

impl Plan {
    /// For at least so many notices, in nodes that begin within so many minutes.
    pub(super) fn of(seed: u64, notices: u32, minutes: NonZeroU32) -> Self {
        let mut rng = Rng::with_seed(seed);
        let length = Duration::from_mins(minutes.get().into());
        let stories = stories(&mut rng, notices);
        let count = u32::try_from(stories.len()).unwrap_or(u32::MAX);
        let lives = stories.into_iter().enumerate().map(|(number, story)| {
            let begins = length / count * u32::try_from(number).unwrap_or(u32::MAX);
            life(&mut rng, number, begins, story)
        });
        let lives = lives.collect();
        let mut troubles = restarts(&mut rng, length);
        troubles.extend(others(&mut rng, notices / 2).into_iter().map(|trouble| (within(&mut rng, length), trouble)));
        troubles.sort_by_key(|(at, _)| *at);
        Self { lives, troubles }
    }

    pub(super) fn notices(&self) -> usize {
        self.lives.iter().map(|life| life.story.notices().len()).sum()
    }
}

/// All stories in turn, each time in another order, until they have so many notices.
fn stories(rng: &mut Rng, notices: u32) -> Vec<Story> {
    let mut drawn = Vec::new();
    let mut told = 0;
    while told < notices as usize {
        let mut all = Story::ALL;
        rng.shuffle(&mut all);
        for story in all {
            if told < notices as usize {
                told += story.notices().len();
                drawn.push(story);
            }
        }
    }
    drawn
}

fn life(rng: &mut Rng, number: usize, begins: Duration, story: Story) -> Life {
    Life {
        number,
        begins,
        story,
        pods: rng.u32(1..=3),
        // All of the shorter one is left at half of a window.
        grace: Duration::from_secs(if rng.bool() { 5 } else { 30 }),
        exits_after: Duration::from_millis(rng.u64(100..3_000)),
        // What goes on has its pods deleted by nobody.
        budget: (!story.goes_on() && rng.u32(0..4) == 0).then(|| rng.u32(0..2)),
        postings: (0..story.notices().len()).map(|_| posting(rng)).collect(),
    }
}

fn posting(rng: &mut Rng) -> Posting {
    let delay = if rng.u32(0..3) == 0 { rng.u64(0..3_000) } else { 0 };
    let copies = match rng.u32(0..5) {
        0 => Copies::Again,
        1 => Copies::AtOnce,
        _ => Copies::One,
    };
    Posting { delay: Duration::from_millis(delay), copies }
}

/// The API server every other minute, etcd every fifth; each once at least.
fn restarts(rng: &mut Rng, length: Duration) -> Vec<(Duration, Trouble)> {
    let minutes = length.as_secs() / 60;
    let api_server = (0..minutes.div_ceil(2)).map(|_| Trouble::Restart("kube-apiserver"));
    let etcd = (0..minutes.div_ceil(5)).map(|_| Trouble::Restart("etcd"));
    api_server.chain(etcd).map(|trouble| (within(rng, length), trouble)).collect()
}

/// What goes wrong beside that: most of it requests, each fault in turn.
fn others(rng: &mut Rng, count: u32) -> Vec<Trouble> {
    let mut faults = faults();
    rng.shuffle(&mut faults);
    let mut faults = faults.iter().cycle();
    let mut other = |rng: &mut Rng, number: u32| {
        let whose = if rng.bool() { Whose::Kubernetes } else { Whose::Aws };
        match number % 20 {
            0 => Trouble::Network(whose, Network::Reset),
            1 => Trouble::Network(whose, Network::BlackHole(a_while(rng))),
            2 => Trouble::Network(whose, Network::Refusal(a_while(rng))),
            3..6 => Trouble::Kill(rng.usize(..)),
            _ => {
                let (fault, steps) = faults.next().expect("the catalogue has faults");
                let lasts = (rng.u32(0..3) == 0).then(|| a_while(rng));
                Trouble::Request { step: steps[rng.usize(..steps.len())], fault: *fault, lasts }
            }
        }
    };
    (0..count).map(|number| other(rng, number)).collect()
}

/// The faults of requests, each with the steps that can meet it.
fn faults() -> Vec<(Fault, Vec<Step>)> {
    let mut faults: Vec<(Fault, Vec<Step>)> = Vec::new();
    for step in Step::ALL {
        // The settings ask for no tag, and no node is Karpenter's.
        if matches!(step.way, Way::Tag | Way::Karpenter) {
            continue;
        }
        for fault in Fault::of(step) {
            match faults.iter_mut().find(|(other, _)| *other == fault) {
                _ if !matches!(fault.means, Means::Request(_)) => {}
                Some((_, steps)) => steps.push(step),
                None => faults.push((fault, vec![step])),
            }
        }
    }
    faults
}

fn a_while(rng: &mut Rng) -> Duration {
    Duration::from_millis(rng.u64(500..2_000))
}

fn within(rng: &mut Rng, length: Duration) -> Duration {
    let length = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(rng.u64(0..length))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::notice::Kind;
    use super::*;

    const MINUTES: NonZeroU32 = NonZeroU32::new(5).expect("it is not 0");

    #[test]
    fn one_seed_has_one_plan() {
        assert_eq!(Plan::of(7, 500, MINUTES), Plan::of(7, 500, MINUTES));
        assert_ne!(Plan::of(7, 500, MINUTES), Plan::of(8, 500, MINUTES));
    }

    #[test]
    fn five_hundred_notices_are_of_every_kind_in_every_way() {
        for seed in 0..20 {
            let plan = Plan::of(seed, 500, MINUTES);
            assert!((500..504).contains(&plan.notices()), "{}", plan.notices());
            let kinds: BTreeSet<Kind> = plan.lives.iter().flat_map(|life| life.story.notices()).collect();
            assert_eq!(kinds, Kind::NOTICES.into());
            let postings: Vec<&Posting> = plan.lives.iter().flat_map(|life| &life.postings).collect();
            for copies in [Copies::One, Copies::Again, Copies::AtOnce] {
                assert!(postings.iter().any(|posting| posting.copies == copies), "{copies:?}");
            }
            assert!(postings.iter().any(|posting| posting.delay > Duration::ZERO));
            for budget in [None, Some(0), Some(1)] {
                assert!(plan.lives.iter().any(|life| life.budget == budget), "{budget:?}");
            }
        }
    }

    #[test]
    fn five_hundred_notices_meet_every_fault() {
        for seed in 0..20 {
            let plan = Plan::of(seed, 500, MINUTES);
            let troubles: Vec<&Trouble> = plan.troubles.iter().map(|(_, trouble)| trouble).collect();
            for (fault, _) in faults() {
                let is_it =
                    |trouble: &&&Trouble| matches!(trouble, Trouble::Request { fault: other, .. } if *other == fault);
                assert!(troubles.iter().any(|trouble| is_it(&trouble)), "{} of seed {seed}", fault.name);
            }
            let has = |is_it: fn(&Trouble) -> bool| troubles.iter().any(|trouble| is_it(trouble));
            assert!(has(|trouble| matches!(trouble, Trouble::Kill(_))));
            assert!(has(|trouble| *trouble == Trouble::Restart("etcd")));
            assert!(has(|trouble| *trouble == Trouble::Restart("kube-apiserver")));
            assert!(has(|trouble| matches!(trouble, Trouble::Network(_, Network::BlackHole(_)))));
        }
    }

    #[test]
    fn a_short_plan_has_restarts_too() {
        let plan = Plan::of(1, 10, NonZeroU32::MIN);
        assert_eq!(plan.troubles.iter().filter(|(_, trouble)| matches!(trouble, Trouble::Restart(_))).count(), 2);
        assert!(plan.lives.iter().all(|life| life.begins < Duration::from_mins(1)));
    }
}

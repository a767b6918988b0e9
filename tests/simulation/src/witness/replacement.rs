//! Replacements of instances: at most one each, confirmed by EC2, at the same capacity.

use std::collections::BTreeSet;

use super::{Facts, Invariant, Verdict, Witness};
use crate::fact::Fact;

/// The instances whose replacement was requested.
#[derive(Debug, Default)]
pub(super) struct Replacements {
    replaced: BTreeSet<String>,
}

impl Witness for Replacements {
    fn observe(&mut self, fact: &Fact, _: &Facts<'_>, verdict: &mut Verdict) {
        let Fact::Replaced { by, instance, is_confirmed, decrements } = fact else { return };
        let is_first = self.replaced.insert(instance.clone());
        verdict.check(Invariant::ReplacedOnce, is_first, || format!("{by} replaces {instance} again"));
        verdict.check(Invariant::ReplacedWhenConfirmed, *is_confirmed, || format!("{by} replaces {instance}"));
        verdict.check(Invariant::CapacityIsKept, !decrements, || format!("{by} decrements for {instance}"));
    }
}

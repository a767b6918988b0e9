//! Events of components, and their effects. A component handles an event and returns effects; it does not reach into another one.

use std::time::Duration;

use crate::aws::AwsEvent;
use crate::cluster::ClusterEvent;
use crate::fact::Fact;
use crate::lambda::{Begun, LambdaEvent};
use crate::plan::ManualChange;

#[derive(Debug)]
pub(crate) enum Event {
    Cluster(usize, ClusterEvent),
    Aws(AwsEvent),
    Lambda(LambdaEvent),
    Person(ManualChange),
}

/// Effect of an event or a request.
#[derive(Debug)]
pub(crate) enum Effect {
    Now(Event),
    Later(Duration, Event),
    Begin(Begun),
    Fact(Fact),
}

/// Effects in their order.
#[derive(Debug, Default)]
pub(crate) struct Effects(pub(crate) Vec<Effect>);

impl Effects {
    pub(crate) fn now(&mut self, event: impl Into<Event>) {
        self.0.push(Effect::Now(event.into()));
    }

    pub(crate) fn after(&mut self, time: Duration, event: impl Into<Event>) {
        self.0.push(Effect::Later(time, event.into()));
    }

    pub(crate) fn begin(&mut self, begun: Begun) {
        self.0.push(Effect::Begin(begun));
    }

    pub(crate) fn fact(&mut self, fact: Fact) {
        self.0.push(Effect::Fact(fact));
    }
}

impl From<(usize, ClusterEvent)> for Event {
    fn from((cluster, event): (usize, ClusterEvent)) -> Self {
        Self::Cluster(cluster, event)
    }
}

impl From<AwsEvent> for Event {
    fn from(event: AwsEvent) -> Self {
        Self::Aws(event)
    }
}

impl From<LambdaEvent> for Event {
    fn from(event: LambdaEvent) -> Self {
        Self::Lambda(event)
    }
}

impl From<ManualChange> for Event {
    fn from(change: ManualChange) -> Self {
        Self::Person(change)
    }
}

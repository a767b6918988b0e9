//! The list of what scheduled maintenance affects: each instance in it is heard of, and nothing else.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;
use spillway_notice::{Incoming, InstanceId, Instances};

use super::notices::{affected, examine};
use crate::{Form, Target, seeds};

const LIST: &str = "/detail/affectedEntities";

/// An event that such a list stands in.
static EVENT: LazyLock<Value> = LazyLock::new(|| with_list().next().expect("there is one"));

fn with_list() -> impl Iterator<Item = Value> {
    seeds::events_as_values().into_iter().filter(|event| event.pointer(LIST).is_some())
}

pub(super) const TARGET: Target = Target {
    name: "health",
    form: Form::Json,
    seeds: || with_list().filter_map(|event| event.pointer(LIST).map(Value::to_string)).collect(),
    examine: |input| {
        let Ok(list) = serde_json::from_slice::<Value>(input) else { return };
        let ids: BTreeSet<&str> = affected(&list).filter(|id| InstanceId::parse(id).is_some()).collect();
        let mut event = EVENT.clone();
        *event.pointer_mut(LIST).expect("it has a list") = list.clone();
        match examine(&event) {
            Ok(Incoming::Notice { notice, .. }) => assert_eq!(ids, [notice.instance.as_str()].into()),
            Ok(Incoming::Several(several)) => {
                let Instances::Named(named) = several.instances else { panic!("they are named") };
                assert!(ids.iter().all(|id| named.contains_key(*id)), "one of {ids:?} is not in {named:?}");
            }
            Ok(Incoming::Unhandled { why, .. }) => assert!(ids.is_empty(), "{ids:?}: {why}"),
            Ok(other @ Incoming::UndoCheck { .. }) => panic!("it is {other:?}"),
            Err(error) => assert!(error.to_string().contains("detail.affectedEntities"), "{error}"),
        }
    },
};

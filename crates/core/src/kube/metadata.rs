//! Deserializes the metadata fields that Spillway reads, and implements `kube_core::Resource` for Spillway's types.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

pub mod annotation {
    /// Annotation of a mirror pod, which represents a static pod in the API server.
    pub const MIRROR: &str = "kubernetes.io/config.mirror";
    /// Karpenter's annotation that forbids the disruption of a pod.
    pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
    /// The cluster autoscaler's annotation that allows or forbids the eviction of a pod.
    pub const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
    /// The cluster autoscaler's annotation that makes a pod count as a DaemonSet pod.
    pub const DAEMON_SET_POD: &str = "cluster-autoscaler.kubernetes.io/daemonset-pod";
    /// Spillway's annotation for the treatment of a pod in a drain: `skip`, `last` or `wait`.
    pub const DRAIN: &str = "spillway/drain";
    pub const READ: [&str; 5] = [MIRROR, DO_NOT_DISRUPT, SAFE_TO_EVICT, DAEMON_SET_POD, DRAIN];
    /// Maximum length of an annotation's value in bytes. A longer value is read as empty.
    pub const LONGEST: usize = 256;
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "annotations")]
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
}

/// Reads an object's metadata. Keeps only the owner reference with `controller: true`.
pub(super) fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let read = Metadata::deserialize(deserializer)?;
    let controller = |owner: &OwnerReference| owner.controller == Some(true);
    Ok(ObjectMeta {
        name: read.name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        generation: read.generation,
        labels: read.labels,
        annotations: read.annotations,
        owner_references: read.owner_references.map(|owners| owners.into_iter().filter(controller).collect()),
        creation_timestamp: read.creation_timestamp,
        deletion_timestamp: read.deletion_timestamp,
        deletion_grace_period_seconds: read.deletion_grace_period_seconds,
        ..ObjectMeta::default()
    })
}

fn annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    struct Known;
    impl<'de> Visitor<'de> for Known {
        type Value = Option<BTreeMap<String, String>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("annotations")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut known = BTreeMap::new();
            while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                if annotation::READ.contains(&&*key) {
                    let value = map.next_value::<String>()?;
                    let value = if value.len() > annotation::LONGEST { String::new() } else { value };
                    known.insert(key.into_owned(), value);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(Some(known))
        }
    }
    deserializer.deserialize_any(Known)
}

/// Implements `kube_core::Resource` for the type `$ours` as the Kubernetes kind `$kind`.
macro_rules! object_of_kind {
    ($ours:ty, $kind:ty) => {
        impl kube_core::Resource for $ours {
            type DynamicType = ();
            type Scope = k8s_openapi::NamespaceResourceScope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                <$kind>::kind(&())
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                <$kind>::group(&())
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                <$kind>::version(&())
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                <$kind>::plural(&())
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(super) use object_of_kind;

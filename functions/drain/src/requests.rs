//! How many requests go over the wire, counted where they leave: those to API servers by `spillway_eks`, those to AWS
//! around the SDK's HTTP client, which sees each attempt of a call.

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::{RuntimeComponents, RuntimeComponentsBuilder};
use aws_smithy_types::config_bag::ConfigBag;
use serde::Serialize;

/// What has gone out since the function started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    pub(crate) kubernetes: spillway_eks::Sent,
    aws: spillway_eks::Sent,
}

/// The requests of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Requests {
    /// To API servers, watches included.
    pub(crate) kubernetes: u32,
    /// To AWS, each attempt of a call.
    pub(crate) aws: u32,
}

impl Sent {
    /// The client, so that what it sends is counted.
    pub(crate) fn counting(&self, client: SharedHttpClient) -> SharedHttpClient {
        SharedHttpClient::new(Counting { inner: client, sent: self.aws.clone() })
    }

    /// All of them.
    pub(crate) fn so_far(&self) -> Requests {
        Requests { kubernetes: self.kubernetes.so_far(), aws: self.aws.so_far() }
    }
}

impl Requests {
    /// Those that have gone out after these.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { kubernetes: self.kubernetes.wrapping_sub(before.kubernetes), aws: self.aws.wrapping_sub(before.aws) }
    }
}

/// Around the client, and around each connector that it gives.
#[derive(Debug)]
struct Counting<T> {
    inner: T,
    sent: spillway_eks::Sent,
}

impl HttpConnector for Counting<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.sent.one_more();
        self.inner.call(request)
    }
}

impl HttpClient for Counting<SharedHttpClient> {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Counting { inner, sent: self.sent.clone() })
    }

    /// Here the client reads its certificates, so that no request has to.
    fn validate_base_client_config(
        &self,
        components: &RuntimeComponentsBuilder,
        config: &ConfigBag,
    ) -> Result<(), BoxError> {
        HttpClient::validate_base_client_config(&self.inner, components, config)
    }

    fn validate_final_config(&self, components: &RuntimeComponents, config: &ConfigBag) -> Result<(), BoxError> {
        HttpClient::validate_final_config(&self.inner, components, config)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.inner.connector_metadata()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invocation_counts_what_went_out_since_it_began() {
        let sent = Sent::default();
        sent.kubernetes.one_more();
        let before = sent.so_far();
        sent.kubernetes.one_more();
        sent.aws.one_more();
        sent.aws.one_more();
        assert_eq!(sent.so_far().since(before), Requests { kubernetes: 1, aws: 2 });
    }
}

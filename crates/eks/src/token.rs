//! Bearer token of EKS: a presigned `GetCallerIdentity` request for STS.
//!
//! EKS sends the request to STS to identify the signer. EKS accepts only a URL of STS, encoded as base64url without padding. The
//! query has only the parameters of the action and of the signature. A signed header contains the cluster's name.
//! Source: `pkg/token/token.go` of `aws-iam-authenticator`.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign};
use aws_sigv4::sign::v4;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;

/// Lifetime of a token after signing, fixed by EKS.
pub const LIFETIME: Duration = Duration::from_mins(15);

const PREFIX: &str = "k8s-aws-v1.";
/// Value of `X-Amz-Expires`, which only old versions of the EKS authenticator check.
const EXPIRES: Duration = Duration::from_mins(1);
const CLUSTER_HEADER: &str = "x-k8s-aws-id";

/// Failure to sign a token with the given credentials and Region.
#[derive(Debug, thiserror::Error)]
#[error("cannot sign an EKS token for cluster {cluster}")]
pub struct TokenError {
    cluster: String,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

pub fn sign_token(
    cluster: &str,
    region: &str,
    credentials: &Credentials,
    now: SystemTime,
) -> Result<SecretString, TokenError> {
    presign(cluster, region, credentials, now)
        .map(|url| SecretString::from(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(url))))
        .map_err(|source| TokenError { cluster: cluster.to_owned(), source })
}

fn presign(
    cluster: &str,
    region: &str,
    credentials: &Credentials,
    now: SystemTime,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let url = format!("https://{}/?Action=GetCallerIdentity&Version=2011-06-15", sts_host(region));
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(EXPIRES);
    let identity = credentials.clone().into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("sts")
        .time(now)
        .settings(settings)
        .build()?
        .into();
    let request =
        SignableRequest::new("GET", &url, std::iter::once((CLUSTER_HEADER, cluster)), SignableBody::Bytes(&[]))?;
    let (instructions, _) = sign(request, &params)?.into_parts();
    let mut signed = http::Request::get(&url).header(CLUSTER_HEADER, cluster).body(())?;
    instructions.apply_to_request_http1x(&mut signed);
    Ok(signed.uri().to_string())
}

/// Returns the regional STS endpoint, because the global endpoint does not work in all Regions.
fn sts_host(region: &str) -> String {
    format!("sts.{region}.{}", spillway_aws_call::dns_suffix(region))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use secrecy::ExposeSecret as _;

    use super::*;

    fn url_of(region: &str) -> String {
        let credentials = Credentials::new("AKIDEXAMPLE", "secret", Some("session/+=".to_owned()), None, "test");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let token = sign_token("prod", region, &credentials, now).unwrap();
        let encoded = token.expose_secret().strip_prefix(PREFIX).unwrap();
        String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap()
    }

    /// Computed once with botocore's `SigV4QueryAuth` for the same instant and credentials.
    #[test]
    fn signature_equals_that_of_botocore() {
        let url = url_of("us-east-1");
        let signature = url.split("X-Amz-Signature=").nth(1).unwrap().split('&').next().unwrap();
        assert_eq!(signature, "a8e0a74aa92db0922ff9fe763ec487cd7912b94dfa55ddbe92bc82592720af19");
    }
}

//! A certificate authority and its certificates.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::error::BedError;

#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
}

/// PEM of a certificate and of its key.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub fn new(name: &str) -> Result<Self, BedError> {
        let make = || {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
            let key = KeyPair::generate()?;
            let certificate = params.self_signed(&key)?;
            Ok(Self { issuer: Issuer::new(params, key), certificate })
        };
        make().map_err(failed(name))
    }

    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// Certificate of a server on 127.0.0.1.
    pub(crate) fn server(&self, name: &str) -> Result<Identity, BedError> {
        let make = || {
            let mut params = CertificateParams::new(["localhost".to_owned(), name.to_owned()])?;
            params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
            params.distinguished_name.push(DnType::CommonName, name);
            self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
        };
        make().map_err(failed(name))
    }

    /// Certificate of a user of the API server.
    pub(crate) fn user(&self, name: &str, group: Option<&str>) -> Result<Identity, BedError> {
        let make = || {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, name);
            if let Some(group) = group {
                params.distinguished_name.push(DnType::OrganizationName, group);
            }
            self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
        };
        make().map_err(failed(name))
    }

    fn sign(&self, mut params: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Result<Identity, rcgen::Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// Private and public key of service account tokens, both PEM.
pub(crate) fn signing_keys() -> Result<(String, String), BedError> {
    let key = KeyPair::generate().map_err(failed("service accounts"))?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

fn failed(name: &str) -> impl FnOnce(rcgen::Error) -> BedError {
    let name = name.to_owned();
    move |source| BedError::Certificate { name, source }
}

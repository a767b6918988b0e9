//! Domain of AWS endpoints in a Region, such as `amazonaws.com.cn`.

/// Region name prefixes and their endpoint domains, from `endpoint_lib.rs` of the SDK clients.
const DOMAINS: [(&str, &str); 6] = [
    ("cn-", "amazonaws.com.cn"),
    ("eusc-", "amazonaws.eu"),
    ("us-iso-", "c2s.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov"),
    ("eu-isoe-", "cloud.adc-e.uk"),
    ("us-isof-", "csp.hci.ic.gov"),
];

#[must_use]
pub fn dns_suffix(region: &str) -> &'static str {
    let domain = DOMAINS.iter().find(|(prefix, _)| region.starts_with(prefix));
    domain.map_or("amazonaws.com", |(_, domain)| domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_has_its_domain() {
        assert_eq!(dns_suffix("eu-west-1"), "amazonaws.com");
        assert_eq!(dns_suffix("us-gov-west-1"), "amazonaws.com");
        assert_eq!(dns_suffix("cn-north-1"), "amazonaws.com.cn");
        assert_eq!(dns_suffix("eusc-de-east-1"), "amazonaws.eu");
        assert_eq!(dns_suffix("us-isob-east-1"), "sc2s.sgov.gov");
    }
}

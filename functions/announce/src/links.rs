//! Links in a message: to the receipts, to the log lines and to the runbook.

use spillway_receipt::VERSION;

use crate::group::Message;
use crate::storm::is_storm;

/// URL of the documentation for the deployed version.
pub(crate) const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/v", env!("CARGO_PKG_VERSION"), "/docs");
/// Maximum number of notices in the query of a link. Slack limits the length of a link.
const NOTICES: usize = 5;
const LONGEST_ID: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) name: &'static str,
    pub(crate) address: String,
}

/// Returns the links. If the log group or the Region is unknown, returns only the link to the runbook.
pub(crate) fn links(message: &Message<'_>) -> Vec<Link> {
    let section = if is_storm(&message.nodes()) { "in-a-storm" } else { "can-i-go-back-to-sleep" };
    let runbook = Link { name: "runbook", address: format!("{PAGES}/troubleshooting.md#{section}") };
    let mut regions = message.events.iter().map(|event| event.receipt.region.as_str());
    let Some(region) = regions.find(|region| !region.is_empty() && !message.log_group.is_empty()) else {
        return vec![runbook];
    };
    let (receipts, lines) = match notices(message) {
        Some(ids) => (
            format!("receipt = {VERSION} and notice.event_id in [{ids}]"),
            format!("span.event.id in [{ids}] or notice.event_id in [{ids}]"),
        ),
        None => (format!("receipt = {VERSION}"), r#"level in ["WARN", "ERROR"]"#.to_owned()),
    };
    let query = |filter: &str, fields: &str| {
        insights(
            region,
            message.log_group,
            &format!("filter {filter} | display @timestamp, {fields} | sort @timestamp"),
        )
    };
    vec![
        Link { name: "receipt", address: query(&receipts, "ending, reason, cluster, node, instance, request_id") },
        Link { name: "log", address: query(&lines, "level, message") },
        runbook,
    ]
}

/// Returns the event ids, quoted and separated by commas, for a Logs Insights query. `None` if there are too many ids, or if an
/// id is missing or malformed.
fn notices(message: &Message<'_>) -> Option<String> {
    let is_plain =
        |id: &&str| id.len() <= LONGEST_ID && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let ids = message.events.iter().map(|event| event.receipt.notice.event_id.as_deref().filter(is_plain));
    let mut ids: Vec<_> = ids.collect::<Option<_>>()?;
    ids.sort_unstable();
    ids.dedup();
    let quoted: Vec<_> = ids.iter().map(|id| format!("\"{id}\"")).collect();
    (ids.len() <= NOTICES).then(|| quoted.join(", "))
}

/// Returns the URL of a Logs Insights query over the last two days. In URL encoding, the console expects `*` instead of
/// `%`.
fn insights(region: &str, log_group: &str, query: &str) -> String {
    let console = match region {
        china if china.starts_with("cn-") => "https://console.amazonaws.cn".to_owned(),
        government if government.starts_with("us-gov-") => "https://console.amazonaws-us-gov.com".to_owned(),
        _ => format!("https://{region}.console.aws.amazon.com"),
    };
    let encoded = |text: &str| {
        let byte = |byte: u8| match byte {
            b'-' | b'.' | b'_' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("*{byte:02x}"),
        };
        text.bytes().map(byte).collect::<String>()
    };
    format!(
        "{console}/cloudwatch/home?region={region}#logsV2:logs-insights$3FqueryDetail$3D~(end~0~start~-172800\
         ~timeType~'RELATIVE~unit~'seconds~editorString~'{}~source~(~'{}))",
        encoded(query),
        encoded(log_group)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::samples::lossy;
    use crate::test_support::message;

    fn addresses(events: &[Event]) -> Vec<String> {
        let events: Vec<&Event> = events.iter().collect();
        links(&message(&events)).into_iter().map(|link| link.address).collect()
    }

    #[test]
    fn links_query_the_receipt_and_the_log_of_each_notice() {
        let [receipt, log, runbook] = addresses(&[lossy(1), lossy(2)]).try_into().expect("three links");
        let home = "https://eu-west-1.console.aws.amazon.com/cloudwatch/home?region=eu-west-1#logsV2:logs-insights$3F";
        let ids = "*20in*20*5b*22e-1*22*2c*20*22e-2*22*5d";
        for (address, filter) in [
            (receipt, format!("filter*20receipt*20*3d*202*20and*20notice.event_id{ids}*20*7c")),
            (log, format!("filter*20span.event.id{ids}*20or*20notice.event_id{ids}*20*7c")),
        ] {
            assert!(address.starts_with(home) && address.contains(&filter), "{address}");
            assert!(address.ends_with("~source~(~'spillway-DrainLogs-x))"), "{address}");
        }
        assert_eq!(runbook, format!("{PAGES}/troubleshooting.md#can-i-go-back-to-sleep"));
        let page = include_str!("../../../docs/troubleshooting.md");
        assert!(page.contains("\n## Can I go back to sleep?\n") && page.contains("\n## In a storm\n"));
    }

    #[test]
    fn strange_event_id_is_not_in_a_link() {
        let mut event = lossy(1);
        event.receipt.notice.event_id = Some("x\" or 1".to_owned());
        assert!(addresses(&[event])[0].contains("filter*20receipt*20*3d*202*20*7c"));
    }

    #[test]
    fn console_is_the_one_of_the_partition() {
        for (region, console) in
            [("cn-north-1", "console.amazonaws.cn"), ("us-gov-west-1", "console.amazonaws-us-gov.com")]
        {
            let mut event = lossy(1);
            region.clone_into(&mut event.receipt.region);
            let start = format!("https://{console}/cloudwatch/home?region={region}#");
            assert!(addresses(&[event])[..2].iter().all(|address| address.starts_with(&start)));
        }
    }
}

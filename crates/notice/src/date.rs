//! Parses dates in AWS notices, in the formats RFC 3339 and RFC 1123.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, de};

use super::envelope::quoted;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date(pub(super) Timestamp);

impl Date {
    fn parse(text: &str) -> Option<Self> {
        // One of AWS' own samples has a wrong weekday.
        const RFC_1123: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
        let utc = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
        let date = text.parse().ok().or_else(|| RFC_1123.parse_timestamp(text).ok());
        // A date without a zone is in UTC.
        date.or_else(|| Some(utc()?.timestamp())).map(Self)
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom(format!("{} is no date", quoted(&text))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dates_in_awss_formats_are_read() {
        for (text, expected) in [
            ("Thu, 27 Aug 2026 13:19:03 GMT", "2026-08-27T13:19:03Z"),
            // The wrong weekday of AWS' own sample; an older sample has a day of one digit.
            ("Thu, 26 Jan 2026 19:01:55 GMT", "2026-01-26T19:01:55Z"),
            ("Fri, 3 Jun 2022 05:01:10 GMT", "2022-06-03T05:01:10Z"),
            ("Sat, 05 Jun 2021 15:10:09 +0200", "2021-06-05T13:10:09Z"),
            ("2026-08-27T13:19:03Z", "2026-08-27T13:19:03Z"),
            ("2026-08-27 13:19:03", "2026-08-27T13:19:03Z"),
            ("2026-08-27T13:19", "2026-08-27T13:19:00Z"),
            ("2026-08-27", "2026-08-27T00:00:00Z"),
        ] {
            assert_eq!(Date::parse(text), Some(Date(expected.parse().unwrap())), "{text}");
        }
        for text in
            ["", " ", "tomorrow", "27/08/2026", "1787836743", "Thu, 31 Feb 2026 13:19:03 GMT", "13:19", "+999999-01-01"]
        {
            assert_eq!(Date::parse(text), None, "{text:?}");
        }
    }
}

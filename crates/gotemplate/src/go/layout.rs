//! Formats a time by a Go layout, such as `2006-01-02 15:04`.

use jiff::Zoned;

use crate::output::Output;

/// Elements of a layout. `January` precedes `Jan`, because the first match is used.
const PARTS: [(&str, Part); 34] = [
    ("January", Part::With("%B")),
    ("Jan", Part::Short("%b")),
    ("Monday", Part::With("%A")),
    ("Mon", Part::Short("%a")),
    ("MST", Part::Zone),
    ("2006", Part::With("%Y")),
    ("__2", Part::With("%_3j")),
    ("_2006", Part::With("_%Y")),
    ("_2", Part::With("%e")),
    ("002", Part::With("%j")),
    ("01", Part::With("%m")),
    ("02", Part::With("%d")),
    ("03", Part::With("%I")),
    ("04", Part::With("%M")),
    ("05", Part::With("%S")),
    ("06", Part::With("%y")),
    ("15", Part::With("%H")),
    ("1", Part::With("%-m")),
    ("2", Part::With("%-d")),
    ("3", Part::With("%-I")),
    ("4", Part::With("%-M")),
    ("5", Part::With("%-S")),
    ("PM", Part::With("%p")),
    ("pm", Part::With("%P")),
    ("-07:00:00", Part::Offset { separator: ":", fields: 3 }),
    ("-07:00", Part::Offset { separator: ":", fields: 2 }),
    ("-070000", Part::Offset { separator: "", fields: 3 }),
    ("-0700", Part::Offset { separator: "", fields: 2 }),
    ("-07", Part::Offset { separator: "", fields: 1 }),
    ("Z07:00:00", Part::Zulu { separator: ":", fields: 3 }),
    ("Z07:00", Part::Zulu { separator: ":", fields: 2 }),
    ("Z070000", Part::Zulu { separator: "", fields: 3 }),
    ("Z0700", Part::Zulu { separator: "", fields: 2 }),
    ("Z07", Part::Zulu { separator: "", fields: 1 }),
];

#[derive(Clone, Copy)]
enum Part {
    /// Directive of `strftime` for the element, such as `%B` for `January`.
    With(&'static str),
    /// Directive of `strftime` for `Jan` or `Mon`. `Janet` is plain text, because a lowercase letter follows `Jan`.
    Short(&'static str),
    /// Short name of the time zone, such as `MST`.
    Zone,
    /// Offset from UTC. With the separator `:` and two fields (hours and minutes), the element is `-07:00`.
    Offset { separator: &'static str, fields: usize },
    /// `Z` if the offset from UTC is 0, and otherwise the same as `Offset`.
    Zulu { separator: &'static str, fields: usize },
    /// Fraction of a second with a fixed number of digits, such as `.000`.
    Fraction { point: char, digits: usize },
    /// Fraction of a second without trailing zeros, such as `.999`.
    Trimmed { point: char, digits: usize },
}

pub(crate) fn format(time: &Zoned, layout: &str) -> Result<String, String> {
    let mut out = Output::default();
    let mut rest = layout;
    while let Some(character) = rest.chars().next() {
        if let Some((part, length)) = part(rest) {
            out.push(&write(time, part))?;
            rest = &rest[length..];
        } else {
            out.push(character.encode_utf8(&mut [0; 4]))?;
            rest = &rest[character.len_utf8()..];
        }
    }
    Ok(out.into_text())
}

/// Returns the element at the start of a layout, and the element's length. `None`: the text does not begin with an element.
fn part(layout: &str) -> Option<(Part, usize)> {
    let known = PARTS.iter().find(|(name, part)| {
        layout.strip_prefix(name).is_some_and(|after| match part {
            Part::Short(_) => !after.starts_with(|c: char| c.is_ascii_lowercase()),
            _ => true,
        })
    });
    known.map(|(name, part)| (*part, name.len())).or_else(|| fraction_part(layout))
}

/// Returns a fraction such as `.000` or `,999` at the start of a layout, and the fraction's length.
fn fraction_part(layout: &str) -> Option<(Part, usize)> {
    let point = layout.chars().next().filter(|point| matches!(point, '.' | ','))?;
    let digit = layout[1..].chars().next().filter(|digit| matches!(digit, '0' | '9'))?;
    let digits = layout[1..].len() - layout[1..].trim_start_matches(digit).len();
    if layout[1 + digits..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let part = if digit == '0' { Part::Fraction { point, digits } } else { Part::Trimmed { point, digits } };
    Some((part, 1 + digits))
}

fn write(time: &Zoned, part: Part) -> String {
    match part {
        Part::With(format) | Part::Short(format) => time.strftime(format).to_string(),
        Part::Zone => zone(time),
        Part::Zulu { .. } if time.offset().seconds() == 0 => "Z".to_owned(),
        Part::Offset { separator, fields } | Part::Zulu { separator, fields } => offset(time, separator, fields),
        Part::Fraction { point, digits } => format!("{point}{}", fraction(time, digits)),
        Part::Trimmed { point, digits } => match fraction(time, digits).trim_end_matches('0') {
            "" => String::new(),
            fraction => format!("{point}{fraction}"),
        },
    }
}

fn offset(time: &Zoned, separator: &str, fields: usize) -> String {
    let seconds = time.offset().seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.unsigned_abs();
    let parts = [seconds / 3600, seconds / 60 % 60, seconds % 60];
    let parts: Vec<String> = parts.iter().take(fields).map(|part| format!("{part:02}")).collect();
    format!("{sign}{}", parts.join(separator))
}

/// Returns the short name of the time's zone, such as `CET`, or the offset if the zone has no name.
fn zone(time: &Zoned) -> String {
    match time.time_zone().to_fixed_offset() {
        Ok(fixed) if fixed.is_zero() => "UTC".to_owned(),
        Ok(_) => offset(time, "", 2),
        Err(_) => time.time_zone().to_offset_info(time.timestamp()).abbreviation().to_owned(),
    }
}

fn fraction(time: &Zoned, digits: usize) -> String {
    format!("{:09}", time.subsec_nanosecond())[..digits.min(9)].to_owned()
}

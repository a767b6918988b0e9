//! How Go writes fractions: `strconv.FormatFloat`.

/// `%v`: as few digits as tell it from its neighbours; an exponent below 1e-4 and from 1e6 on.
pub(crate) fn shortest(value: f64) -> String {
    general(value, None, false)
}

/// `%f`
pub(crate) fn fixed(value: f64, precision: usize) -> String {
    not_finite(value).unwrap_or_else(|| format!("{value:.precision$}"))
}

/// `%e`: one digit, a point, the others, an exponent of two digits or more.
pub(crate) fn scientific(value: f64, precision: usize) -> String {
    not_finite(value).unwrap_or_else(|| long_exponent(&format!("{value:.precision$e}")))
}

/// `%g`: the exponent's form for the very large and very small. `keep_zeros` is `%#g`.
pub(crate) fn general(value: f64, precision: Option<usize>, keep_zeros: bool) -> String {
    if let Some(text) = not_finite(value) {
        return text;
    }
    let precision = precision.map(|digits| digits.max(1));
    let scientific = match precision {
        None => format!("{value:e}"),
        Some(digits) => format!("{value:.*e}", digits - 1),
    };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // The shortest form is taken for one of six digits, when it comes to the exponent.
    let limit = precision.unwrap_or(6);
    if exponent < -4 || exponent >= i32::try_from(limit).unwrap_or(i32::MAX) {
        let mantissa = if keep_zeros { mantissa } else { without_zeros(mantissa) };
        return long_exponent(&format!("{mantissa}e{exponent}"));
    }
    let decimals = match precision {
        None => return format!("{value}"),
        Some(digits) => i32::try_from(digits).unwrap_or(i32::MAX).saturating_sub(1).saturating_sub(exponent).max(0),
    };
    let text = format!("{value:.*}", usize::try_from(decimals).unwrap_or(0));
    if keep_zeros { text } else { without_zeros(&text).to_owned() }
}

/// JSON's numbers, as Go writes them: plain from 1e-6 up to 1e21.
pub(crate) fn json(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        // Go writes 1e+21, and 1e-9 with one digit.
        return if size >= 1e21 { text.replace('e', "e+") } else { text };
    }
    format!("{value}")
}

fn not_finite(value: f64) -> Option<String> {
    if value.is_nan() {
        Some("NaN".to_owned())
    } else if value.is_infinite() {
        Some(if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned())
    } else {
        None
    }
}

/// `1e5` as Go writes it: `1e+05`.
fn long_exponent(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

//! Memory of a rendering, measured at the allocator. A separate test program, so that no other test allocates.

use std::sync::{Mutex, PoisonError};

use gotemplate_json::Template;
use peak_alloc::PeakAlloc;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Largest memory of any template, in bytes.
const MOST: usize = 64 << 20;

/// Serializes the tests, because the allocator counts for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// Renders a template, and asserts that it stays within the limit.
fn bounded(template: &str) -> Result<String, String> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let data = json!({"StartTime": "2026-11-21 03:12:44 +0000 UTC", "Text": "hello"});
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = Template::parse(template)
        .map_err(|error| error.to_string())
        .and_then(|template| template.render(&data).map_err(|error| error.to_string()));
    let taken = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(taken <= MOST, "{taken} bytes");
    result
}

/// Asserts that a template is refused with this reason, within the limit.
fn refused(template: &str, reason: &str) {
    let error = bounded(template).expect_err(template);
    assert!(error.contains(reason), "{error}");
}

const TOO_LARGE: &str = "more than 1048576 bytes";
const TOO_MUCH_WORK: &str = "too much work";

#[test]
fn precision_or_width_beyond_16_bits_is_filled() {
    let zeros = |count| "0".repeat(count);
    assert_eq!(bounded(r#"{{ printf "%.65536f" 1.5 }}"#), Ok(format!("1.5{}", zeros(65_535))));
    assert_eq!(bounded(r#"{{ printf "%.65535e" 1.5 }}"#), Ok(format!("1.5{}e+00", zeros(65_534))));
    let pad = |with: &str| with.repeat(69_999);
    assert_eq!(bounded(r#"{{ printf "%070000d" 5 }}"#), Ok(format!("{}5", pad("0"))));
    assert_eq!(bounded(r#"{{ printf "%70000d" 5 }}"#), Ok(format!("{}5", pad(" "))));
}

#[test]
fn searched_text_is_charged_for_each_match() {
    refused(r#"{{ regexReplaceAll ".*b|a" (repeat 32000 "a") "c" }}"#, TOO_MUCH_WORK);
    refused(
        r#"{{ $x := repeat 32000 "a" }}{{ range 1000 }}{{ regexFind "((a?){10}){10}b" $x }}{{ end }}"#,
        TOO_MUCH_WORK,
    );
}

#[test]
fn methods_and_their_results_are_charged() {
    let layout = "2006-01-02T15:04:05.999999999Z07:00 ".repeat(3_900 / 36);
    let formats = |by: &str| format!("{{{{ range 600 }}}}{{{{ if {by} }}}}{{{{ end }}}}{{{{ end }}}}");
    refused(&formats(&format!("$.StartTime.Format {layout:?}")), TOO_MUCH_WORK);
    refused(&formats(&format!("date {layout:?} $.StartTime")), TOO_MUCH_WORK);
    let zones = r#"{{ range 20000 }}{{ if dateInZone "" $.StartTime "Europe/Berlin" }}{{ end }}{{ end }}"#;
    refused(zones, TOO_MUCH_WORK);
}

#[test]
fn slow_functions_cost_more_than_their_bytes() {
    let directives = format!("{{{{ range 200 }}}}{{{{ printf {:?} }}}}{{{{ end }}}}", "%%".repeat(1000));
    refused(&directives, TOO_MUCH_WORK);
    refused("{{ range 80000 }}{{ if $.StartTime.Unix }}{{ end }}{{ end }}", TOO_MUCH_WORK);
    let expression = r#"{{ $class := print "[" (repeat 4000 "a") "]" }}"#;
    let reads = r#"{{ range 600 }}{{ if regexMatch $class "a" }}{{ end }}{{ end }}"#;
    refused(&format!("{expression}{reads}"), TOO_MUCH_WORK);
    // The type of a list or map depends on each of its items.
    for (made, directives) in [("until 30000", 600), (r#"split "" (repeat 7000 "a")"#, 3000)] {
        refused(&format!("{{{{ printf {:?} ({made}) }}}}", "%[1]T".repeat(directives)), TOO_MUCH_WORK);
    }
}

#[test]
fn kept_values_are_bounded() {
    // Small values cost more than their text: a map's entries most of all.
    for value in [
        r#"split "" (repeat 7000 "a")"#,
        r#"splitList "" (repeat 15000 "a")"#,
        r#"repeat 1000000 "a""#,
        "until 30000",
        r#"dict (repeat 100000 "a") (repeat 100000 "b")"#,
    ] {
        let keeps = format!("{{{{ $x := list }}}}{}", format!("{{{{ $x := {value} }}}}").repeat(1000));
        refused(&keeps, TOO_MUCH_WORK);
    }
}

#[test]
fn large_value_is_refused_before_it_is_made() {
    for template in [
        r#"{{ printf "%x" (repeat 1000000 "a") }}"#,
        r#"{{ printf "% #x" (repeat 1000000 "a") }}"#,
        r#"{{ printf "%q" (repeat 1000000 "\x01") }}"#,
        r#"{{ quote (repeat 1000000 "\x01") }}"#,
        r#"{{ html (repeat 1000000 "<") }}"#,
        r#"{{ js (repeat 1000000 "<") }}"#,
        r#"{{ urlquery (repeat 1000000 "<") }}"#,
        r#"{{ toJson (repeat 1000000 "\x01") }}"#,
        r#"{{ toPrettyJson (repeat 1000000 "<") }}"#,
        r#"{{ fromJson (print "[" (repeat 500000 "0,") "0]") }}"#,
        "{{ until 1000000 }}",
        "{{ until 1000000000000 }}",
        r#"{{ repeat 1000000000000 "x" }}"#,
        r#"{{ indent 1000000000000 "x" }}"#,
        r#"{{ nindent 1000000000000 "x" }}"#,
        r#"{{ $x := repeat 100000 "a" }}{{ replace "a" $x $x }}"#,
        r#"{{ $x := repeat 30000 "a" }}{{ regexReplaceAll "a" $x $x }}"#,
        r#"{{ $x := repeat 100000 "a" }}{{ join $x (splitList "" (repeat 20000 "a")) }}"#,
        r#"{{ split "" (repeat 1000000 "a") }}"#,
        r#"{{ splitList "" (repeat 1000000 "a") }}"#,
        r#"{{ $x := "ab" }}{{ range 40 }}{{ $x = print $x $x }}{{ end }}"#,
        "{{ $x := list 1 }}{{ range 40 }}{{ $x = list $x $x }}{{ end }}",
        r#"{{ range 10 }}{{ printf "%1000000d%1000000d" 1 2 }}{{ end }}"#,
        // A width counts for all items together.
        r#"{{ printf "%1000000v" (until 300) }}"#,
        r#"{{ printf "%1000000v" (until 3000) }}"#,
        "{{ range 100000 }}{{ $.Text }}, and a text of about sixty characters for each round{{ end }}",
    ] {
        refused(template, TOO_LARGE);
    }
}

#[test]
fn long_template_is_not_parsed() {
    refused(&"{{.}}".repeat(1 << 20), "a template has no more than");
    // Longest templates of the most expensive pieces.
    let nested = format!("{{{{{}.{}}}}}", "(".repeat(99), ")".repeat(99));
    let nested_arguments = format!("{{{{print {}}}}}", "(.) ".repeat(90));
    for piece in ["{{.}}", "{{$a:=1}}", "{{if .}}{{end}}", "{{.a.a.a.a.a.a.a}}", &nested, &nested_arguments] {
        let _ = bounded(&piece.repeat((64 << 10) / piece.len()));
    }
}

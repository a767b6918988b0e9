//! Bounds on a template's size, work and depth. Any call is rendered or refused, without a panic.

use gotemplate_json::Template;
use serde_json::{Value, json};

fn data() -> Value {
    json!({"Text": "hello", "Number": 3, "List": ["a", "b"], "Map": {"k": "v"}, "StartTime": "2026-11-21 03:12:44 +0000 UTC"})
}

fn render(template: &str) -> Result<String, String> {
    let template = Template::parse(template).map_err(|error| error.to_string())?;
    template.render(&data()).map_err(|error| error.to_string())
}

/// Asserts that a template is refused with this reason.
fn refused(template: &str, reason: &str) {
    let error = render(template).expect_err(template);
    assert!(error.contains(reason), "{error}");
}

#[test]
fn work_is_bounded() {
    refused("{{ range 1000000000000 }}{{ end }}", "too much work");
    refused(r#"{{ range 1000000 }}{{ $x := repeat 100000 "x" }}{{ end }}"#, "too much work");
    refused(&format!("{{{{ range 1000000 }}}}{}{{{{ end }}}}", "{{ $x := $ }}".repeat(100)), "too much work");
}

#[test]
fn compiled_regular_expression_is_bounded() {
    refused(r#"{{ regexMatch "((a{100}){100}){100}" .Text }}"#, "is no regular expression");
}

#[test]
fn nested_blocks_are_bounded() {
    refused(&format!("{}{}", "{{ if true }}".repeat(1_000), "{{ end }}".repeat(1_000)), "more than 100 blocks");
    refused(&"{{ if true }}{{ else if true }}".repeat(1_000), "more than 100 blocks");
}

/// Asserts that a template of this size is rendered, and refused with one more.
fn bounded_at(most: usize, reason: &str, template: impl Fn(usize) -> String) {
    let rendered = render(&template(most));
    assert!(rendered.is_ok(), "{most}: {rendered:?}");
    refused(&template(most + 1), reason);
}

#[test]
fn limits_of_the_readme_are_exact() {
    let (kib, mib) = (1 << 10, 1 << 20);
    bounded_at(mib, "more than 1048576 bytes", |size| {
        let (pieces, rest) = (size / kib, "x".repeat(size % kib));
        format!(r#"{{{{ $x := repeat {kib} "x" }}}}{{{{ range {pieces} }}}}{{{{ $x }}}}{{{{ end }}}}{rest}"#)
    });
    bounded_at(64 * kib, "no more than 65536 bytes", |size| "x".repeat(size));
    bounded_at(4 * kib, "bytes of a regular expression", |size| {
        format!(r#"{{{{ regexMatch (print "[" (repeat {} "a") "]") "a" }}}}"#, size - 2)
    });
    bounded_at(32 * kib, "bytes that an expression may search", |size| {
        format!(r#"{{{{ regexMatch "b" (repeat {size} "a") }}}}"#)
    });
    // The rendered text is a level. A block without rendering has the parser's bound only.
    let parentheses = |levels: usize| format!("{{{{ {}1{} }}}}", "(".repeat(levels), ")".repeat(levels));
    bounded_at(99, "more than 100 levels", parentheses);
    bounded_at(99, "more than 100 blocks", |levels| format!("{{{{ if false }}}}{}{{{{ end }}}}", parentheses(levels)));
    for nested in ["list $x", r#"dict "key" $x"#] {
        bounded_at(100, "more than 100 levels", |levels| {
            format!(r#"{{{{ $x := "text" }}}}{{{{ range {levels} }}}}{{{{ $x = {nested} }}}}{{{{ end }}}}"#)
        });
    }
    bounded_at(99, "more than 100 levels", |templates| {
        let defined = |n: usize| format!(r#"{{{{ define "{n}" }}}}{{{{ template "{}" }}}}{{{{ end }}}}"#, n + 1);
        let defined: String = (0..templates).map(defined).collect();
        format!(r#"{defined}{{{{ define "{templates}" }}}}{{{{ end }}}}{{{{ template "0" }}}}"#)
    });
}

#[test]
fn template_within_the_bounds_is_rendered() {
    assert_eq!(render("{{ $n := 0 }}{{ range 10000 }}{{ $n = add1 $n }}{{ end }}{{ $n }}"), Ok("10000".to_owned()));
}

/// Arguments of all kinds.
const ARGUMENTS: &str = r#".Text¦.List¦.Map¦.StartTime¦nil¦true¦1¦-1¦2.5¦-9223372036854775808¦9223372036854775807¦""¦"é🚀ß"¦"%s %d %v %q %x %5.2f %[9]d %*d"¦"[a-"¦"$1"¦"2006 Z07 .000 ,999"¦(list nil 1)"#;

#[test]
fn any_call_is_rendered_or_refused() {
    for function in gotemplate_json::functions() {
        for first in ARGUMENTS.split('¦') {
            let _ = render(&format!("{{{{ {function} {first} }}}}"));
            for second in ARGUMENTS.split('¦') {
                let _ = render(&format!("{{{{ {function} {first} {second} }}}}"));
                let _ = render(&format!("{{{{ {function} {first} {second} {first} }}}}"));
            }
        }
    }
}

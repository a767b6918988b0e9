//! A template cannot take the function's memory, stack or time; and any text is read, or refused, without a panic.

use gotemplate_json::Template;
use proptest::prelude::*;
use serde_json::{Value, json};

fn data() -> Value {
    json!({"Text": "hello", "Number": 3, "List": ["a", "b"], "Map": {"k": "v"}, "StartTime": "2026-11-21 03:12:44 +0000 UTC"})
}

fn render(template: &str) -> Result<String, String> {
    let template = Template::parse(template).map_err(|error| error.to_string())?;
    template.render(&data()).map_err(|error| error.to_string())
}

/// The template is stopped, with words that say why.
fn stops(template: &str, why: &str) {
    let error = render(template).expect_err("it is stopped");
    assert!(error.contains(why), "{error}");
}

#[test]
fn a_message_has_a_bound() {
    stops("{{ range 100000 }}{{ $.Text }}, and what else there is to say of it{{ end }}", "more than 1048576 bytes");
}

#[test]
fn a_value_has_a_bound() {
    stops(r#"{{ $x := "ab" }}{{ range 40 }}{{ $x = print $x $x }}{{ end }}"#, "more than 1048576 bytes");
    stops("{{ $x := list 1 }}{{ range 40 }}{{ $x = list $x $x }}{{ end }}", "more than 1048576 bytes");
}

#[test]
fn nothing_large_is_made_before_it_is_refused() {
    for template in [
        r#"{{ repeat 1000000000000 "x" }}"#,
        r#"{{ indent 1000000000000 "x" }}"#,
        r#"{{ nindent 1000000000000 "x" }}"#,
        "{{ until 1000000000000 }}",
        r#"{{ $x := repeat 100000 "a" }}{{ replace "a" $x $x }}"#,
        r#"{{ $x := repeat 30000 "a" }}{{ regexReplaceAll "a" $x $x }}"#,
        r#"{{ $x := repeat 100000 "a" }}{{ join $x (splitList "" (repeat 20000 "a")) }}"#,
        r#"{{ range 10 }}{{ printf "%1000000d%1000000d" 1 2 }}{{ end }}"#,
    ] {
        stops(template, "more than 1048576 bytes");
    }
}

#[test]
fn a_template_has_a_bound_on_its_work() {
    stops("{{ range 1000000000000 }}{{ end }}", "too much work");
    stops(r#"{{ range 1000000 }}{{ $x := repeat 100000 "x" }}{{ end }}"#, "too much work");
    stops(&format!("{{{{ range 1000000 }}}}{}{{{{ end }}}}", "{{ $x := $ }}".repeat(100)), "too much work");
    // What is kept is counted as well, so variables are bound with the work.
    let variables = "{{ $v := $x }}".repeat(1000);
    stops(&format!(r#"{{{{ $x := repeat 1000000 "x" }}}}{variables}"#), "too much work");
}

#[test]
fn an_expression_has_a_bound() {
    stops(r#"{{ regexMatch "a*b" (repeat 100000 "a") }}"#, "more than the 32768 bytes");
    stops(r#"{{ regexMatch "((a{100}){100}){100}" .Text }}"#, "is no regular expression");
}

#[test]
fn a_template_has_a_bound_on_its_depth() {
    stops(r#"{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}"#, "more than 100 levels");
    stops(&format!("{}{}", "{{ if true }}".repeat(1_000), "{{ end }}".repeat(1_000)), "more than 100 blocks");
    stops(&format!("{{{{ {}1{} }}}}", "(".repeat(1_000), ")".repeat(1_000)), "more than 100 blocks");
    stops(&"{{ if true }}{{ else if true }}".repeat(1_000), "more than 100 blocks");
    stops("{{ $x := list 1 }}{{ range 200 }}{{ $x = list $x }}{{ end }}", "more than 100 levels");
}

/// With so many it is rendered, and with one more it is stopped.
fn takes_no_more_than(most: usize, why: &str, template: impl Fn(usize) -> String) {
    let rendered = render(&template(most));
    assert!(rendered.is_ok(), "{most}: {rendered:?}");
    stops(&template(most + 1), why);
}

#[test]
fn limits_of_the_readme_are_exact() {
    let (kib, mib) = (1 << 10, 1 << 20);
    takes_no_more_than(mib, "more than 1048576 bytes", |size| {
        let (pieces, rest) = (size / kib, "x".repeat(size % kib));
        format!(r#"{{{{ $x := repeat {kib} "x" }}}}{{{{ range {pieces} }}}}{{{{ $x }}}}{{{{ end }}}}{rest}"#)
    });
    takes_no_more_than(64 * kib, "no more than 65536 bytes", |size| "x".repeat(size));
    takes_no_more_than(4 * kib, "bytes of a regular expression", |size| {
        format!(r#"{{{{ regexMatch (print "[" (repeat {} "a") "]") "a" }}}}"#, size - 2)
    });
    takes_no_more_than(32 * kib, "bytes that an expression may search", |size| {
        format!(r#"{{{{ regexMatch "b" (repeat {size} "a") }}}}"#)
    });
    // What is in a block that is not rendered only has to be read; what is rendered is a level too.
    let parentheses = |levels: usize| format!("{{{{ {}1{} }}}}", "(".repeat(levels), ")".repeat(levels));
    takes_no_more_than(99, "more than 100 levels", parentheses);
    takes_no_more_than(99, "more than 100 blocks", |levels| {
        format!("{{{{ if false }}}}{}{{{{ end }}}}", parentheses(levels))
    });
    for nested in ["list $x", r#"dict "key" $x"#] {
        takes_no_more_than(100, "more than 100 levels", |levels| {
            format!(r#"{{{{ $x := "text" }}}}{{{{ range {levels} }}}}{{{{ $x = {nested} }}}}{{{{ end }}}}"#)
        });
    }
    takes_no_more_than(99, "more than 100 levels", |templates| {
        let defined = |n: usize| format!(r#"{{{{ define "{n}" }}}}{{{{ template "{}" }}}}{{{{ end }}}}"#, n + 1);
        let defined: String = (0..templates).map(defined).collect();
        format!(r#"{defined}{{{{ define "{templates}" }}}}{{{{ end }}}}{{{{ template "0" }}}}"#)
    });
}

#[test]
fn what_is_within_the_bounds_is_rendered() {
    assert_eq!(render(r#"{{ repeat 500000 "x" | len }}"#), Ok("500000".to_owned()));
    assert_eq!(render("{{ $n := 0 }}{{ range 10000 }}{{ $n = add1 $n }}{{ end }}{{ $n }}"), Ok("10000".to_owned()));
}

/// Pieces that templates are made of, so that drawn texts get past the first character.
fn piece() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "{{",
        "}}",
        "{{ ",
        " }}",
        "{{- ",
        " -}}",
        " ",
        ".",
        "$",
        "$x",
        ":=",
        "=",
        "|",
        "(",
        ")",
        ",",
        "\"",
        "`",
        "'",
        "\\",
        "\n",
        "if ",
        "else",
        "end",
        "range ",
        "with ",
        "define ",
        "template ",
        "block ",
        "break",
        "continue",
        "nil",
        "true",
        ".Text",
        ".Number",
        ".List",
        ".Map",
        ".StartTime",
        ".Format",
        "\"a\"",
        "\"15:04\"",
        "printf ",
        "\"%5.2f\"",
        "\"%[2]*d\"",
        "index ",
        "slice ",
        "trunc ",
        "abbrev ",
        "substr ",
        "-1",
        "3",
        "0x",
        "1e5",
        "99999999999",
        "date ",
        "round ",
        "dig ",
        "dict ",
        "list ",
        "eq ",
        "and ",
        "or ",
        "not ",
        "regexReplaceAll ",
        "toJson ",
        "fromJson ",
        "html ",
        "é",
        "🚀",
        "/*",
        "*/",
    ]);
    prop_oneof![9 => known.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}

/// A call of a function with arguments of all kinds.
fn call() -> impl Strategy<Value = String> {
    let function = prop::sample::select(gotemplate_json::functions().collect::<Vec<_>>());
    let argument = prop::sample::select(vec![
        ".Text",
        ".Number",
        ".List",
        ".Map",
        ".StartTime",
        "nil",
        "true",
        "0",
        "1",
        "-1",
        "2.5",
        "-9223372036854775808",
        "9223372036854775807",
        "\"\"",
        "\"é🚀ß\"",
        "\"%s %d %v %q %x %5.2f %[9]d %*d\"",
        "\"[a-\"",
        "\"$1\"",
        "\"2006 Z07 .000 ,999\"",
        "(list)",
        "(list nil 1)",
        "(dict)",
        "\"-0\"",
        "\"0x\"",
        "1e308",
        "(list (list 1))",
    ]);
    (function, prop::collection::vec(argument, 0..4))
        .prop_map(|(function, arguments)| format!("{{{{ {function} {} }}}}", arguments.join(" ")))
}

proptest! {
    #[test]
    fn any_text_is_rendered_or_refused(pieces in prop::collection::vec(piece(), 0..40)) {
        let _ = render(&pieces.concat());
    }

    #[test]
    fn any_action_is_rendered_or_refused(pieces in prop::collection::vec(piece(), 0..12)) {
        let _ = render(&format!("{{{{ {} }}}}", pieces.join(" ")));
    }

    #[test]
    fn any_call_is_rendered_or_refused(call in call()) {
        let _ = render(&call);
    }

    #[test]
    fn text_without_actions_is_itself(text in "[^{]*") {
        prop_assert_eq!(render(&text), Ok(text));
    }
}

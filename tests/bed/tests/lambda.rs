//! The Lambda driver, driving a small Python function.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod lambda {
    mod deliveries;
    mod invocations;
    mod processes;
    mod sink;
    mod under_test;
}

//! See `wharf::api::fuzz::body`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    wharf::api::fuzz::body(bytes);
});

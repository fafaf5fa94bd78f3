//! See `wharf::http::fuzz::path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    wharf::http::fuzz::path(bytes);
});

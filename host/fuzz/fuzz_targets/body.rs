//! See `wharf_fuzz::body`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    wharf_fuzz::body(bytes);
});

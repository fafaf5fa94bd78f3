//! See `wharf_fuzz::path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    wharf_fuzz::path(bytes);
});

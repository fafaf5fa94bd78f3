//! See `wharf_fuzz::name`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    wharf_fuzz::name(bytes);
});

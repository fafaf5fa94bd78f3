//! See `wharf::api::fuzz::name`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    wharf::api::fuzz::name(bytes);
});

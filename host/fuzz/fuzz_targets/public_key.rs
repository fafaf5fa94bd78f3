//! See `wharf_fuzz::public_key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    wharf_fuzz::public_key(bytes);
});

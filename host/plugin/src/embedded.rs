//! The plugins in the binary, `EMBEDDED`, and their request files, `REQUESTS`: each with the
//! plugin's name.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

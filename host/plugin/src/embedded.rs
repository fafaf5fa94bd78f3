//! The plugins in the binary, `EMBEDDED`, and the policies for their engines, `POLICIES`: each with the
//! plugin's name.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

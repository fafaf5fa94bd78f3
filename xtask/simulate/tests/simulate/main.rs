//! The simulator in every run of the tests: seeds, and faults at each call of short scripts.

mod exhaustive;
mod seeds;

//! The REST interface on the simulated engine.

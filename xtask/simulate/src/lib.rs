//! The simulator: one seed makes a script of what users, the operator and the machine do, and the faults of engines
//! and of the disk. The real use cases, the real reconciler and the real database run it on one thread, in virtual
//! time, and after each event the model checks that all promises hold. A seed has one trace.
//!
//! - [`script`], [`act`], [`acts`], [`shrink`]: what happens.
//! - [`seeds`], [`run`], [`process`], [`sim`], [`setup`], [`time`], [`trace`]: the run of a script.
//! - [`world`], [`disk`], [`receivers`], [`dice`]: engines, the disk and the receivers of webhooks, with their faults.
//! - [`model`]: what must be true.
//! - [`exhaustive`], [`planted`]: every fault at every call, and faults that must be found.

pub mod act;
pub mod acts;
pub mod dice;
pub mod disk;
pub mod exhaustive;
pub mod model;
pub mod planted;
pub mod process;
pub mod receivers;
pub mod run;
pub mod script;
pub mod seeds;
pub mod setup;
pub mod shrink;
pub mod sim;
pub mod time;
pub mod trace;
pub mod world;

//! The choice of a node for an instance, and the shortages if no node fits. The inventory is derived
//! from the claims and changes only with them.

mod addresses;
mod allocation;
mod bits;
mod inventory;
mod moves;
mod node;
mod ports;
mod scheduler;
#[cfg(test)]
mod tests;

pub use addresses::gateway;
pub use allocation::{Allocation, KeptOut};
pub use inventory::{Inventory, Pools};
pub use moves::{MovePlace, MoveRequest};
pub use node::{Cluster, NodeImages, NodeSetup, NodeUsage, Supports};
pub use scheduler::{Placement, PlacementRequest};

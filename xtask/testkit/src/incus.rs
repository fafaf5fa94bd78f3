//! A private Incus cluster on this machine: each member has a network namespace, a mount namespace and a
//! directory of its own. It does not touch the machine's own Incus.
//!
//! - [`Cluster`] (`cluster`): its members, and the steps of its life that differ from other engines'.
//!   [`Member`] (`member`): a member's namespaces and process. `place`: paths, names and addresses.
//! - [`Project`] (`project`): the operator's part: a project, its network and a certificate.
//! - `package`: installation. `remains`: processes of members, of killed runs too.

mod cluster;
mod member;
mod package;
mod place;
mod project;
mod remains;

pub(crate) use cluster::Members;
pub use cluster::{Cluster, ClusterOptions};
pub use member::Member;
pub use package::{can_install, install};
pub use project::{GATEWAY, LAN, NETWORK, POOL, Project};
pub use wharf_images::incus::{IncusProject, ask};

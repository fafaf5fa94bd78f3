//! The suspensions of instances and users by the operator. A suspended instance neither starts nor changes
//! its size.

use wharf_db::{INSTANCES, Rows, Table, tables};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::suspension::Suspension;

tables! {
    /// Instances that the operator suspended.
    pub const SUSPENDED: Table<(), InstanceId, Suspension> =
        Table::part_of(&INSTANCES, b'x', 0);
    /// Users whose instances the operator suspended.
    pub const SUSPENDED_USERS: Table<(), UserId, Suspension> =
        Table::bounded(b'x', 1, "One row of a user, set by the operator",
            "Until the operator changes it");
}

/// Fails if the operator has suspended the instance or its owner.
pub(super) fn check(rows: &impl Rows, instance: &Instance) -> Result<(), Error> {
    check_user(rows, instance.owner)?;
    match rows.get(&SUSPENDED, instance.id)? {
        Some(suspension) => Err(suspension.of_instance()),
        None => Ok(()),
    }
}

/// Fails if the operator has suspended the user's instances.
pub(super) fn check_user(rows: &impl Rows, user: UserId) -> Result<(), Error> {
    match rows.get(&SUSPENDED_USERS, user)? {
        Some(suspension) => Err(suspension.of_user()),
        None => Ok(()),
    }
}

//! The tables of all crates, and the steps that led to their present rows.

use wharf_accounts::key_rows::{KEYS, take_metrics_from_users};
use wharf_backups::admit_volumes;
use wharf_db::{DbSchema, MigrationStep};
use wharf_ground::users::write_canonical_addresses;
use wharf_instances::labels;
use wharf_instances::quota::{limit_snapshots, limit_volumes};

/// The tables and the steps of this version.
pub static SCHEMA: DbSchema = DbSchema {
    tables: &[
        wharf_ground::TABLES,
        wharf_accounts::TABLES,
        wharf_instances::TABLES,
        &[wharf_hooks::TABLES, wharf_backups::TABLES],
    ],
    steps: &[
        MigrationStep {
            done: "gave each user a list of API keys",
            run: |rows| rows.index_again(&KEYS),
        },
        MigrationStep {
            done: "took the scope `metrics` from keys that users made",
            run: take_metrics_from_users,
        },
        MigrationStep {
            done: "wrote the addresses of users in one form",
            run: write_canonical_addresses,
        },
        MigrationStep {
            done: "gave the pages of instances labels",
            run: labels::label_all,
        },
        MigrationStep {
            done: "gave the limits of users the quantities of volumes",
            run: limit_volumes,
        },
        MigrationStep {
            done: "gave the limits of users the quantities of snapshots",
            run: limit_snapshots,
        },
        MigrationStep {
            done: "gave backups the form that those of volumes fit into",
            run: admit_volumes,
        },
    ],
};

#[cfg(test)]
mod tests;

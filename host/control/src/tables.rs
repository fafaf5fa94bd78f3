//! All tables of features, and the steps that led to their present rows.

use super::account::key_rows::{KEYS, take_metrics_from_users};
use super::{
    account, host_keys, idempotency, labels, moves, nodes, private_ports, quota, restart,
    suspension, webhook,
};
use wharf_db::{DbSchema, MigrationStep};
use wharf_ground::users::write_canonical_addresses;
use wharf_ground::{clock, users};

/// The tables and the steps of this version.
pub static SCHEMA: DbSchema = DbSchema {
    tables: &[
        clock::TABLES,
        users::TABLES,
        account::session::TABLES,
        account::invite::TABLES,
        account::password::TABLES,
        account::state::TABLES,
        account::passkey::TABLES,
        account::identity::TABLES,
        account::key_rows::TABLES,
        account::ssh_key::TABLES,
        quota::TABLES,
        suspension::TABLES,
        webhook::TABLES,
        idempotency::TABLES,
        host_keys::TABLES,
        private_ports::TABLES,
        labels::TABLES,
        restart::TABLES,
        moves::TABLES,
        nodes::TABLES,
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
    ],
};

#[cfg(test)]
pub(crate) mod tests;

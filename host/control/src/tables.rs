//! All tables of features, and the steps that led to their present rows.

use super::account::user::write_canonical_addresses;
use super::key_rows::{KEYS, take_metrics_from_users};
use super::{
    account, clock, drain, host_keys, idempotency, key_rows, moves, nodes, quota, restart, ssh_key,
    suspend, webhook,
};
use wharf_db::{Schema, Step};

/// The tables and the steps of this version.
pub static SCHEMA: Schema = Schema {
    tables: &[
        clock::TABLES,
        account::user::TABLES,
        account::session::TABLES,
        account::invite::TABLES,
        account::password::TABLES,
        account::state::TABLES,
        account::passkey::TABLES,
        account::identity::TABLES,
        key_rows::TABLES,
        ssh_key::TABLES,
        quota::TABLES,
        suspend::TABLES,
        webhook::TABLES,
        idempotency::TABLES,
        host_keys::TABLES,
        restart::TABLES,
        moves::TABLES,
        nodes::TABLES,
        drain::TABLES,
    ],
    steps: &[
        Step {
            done: "gave each user a list of API keys",
            run: |rows| rows.index_again(&KEYS),
        },
        Step {
            done: "took the scope `metrics` from keys that users made",
            run: take_metrics_from_users,
        },
        Step {
            done: "wrote the addresses of users in one form",
            run: write_canonical_addresses,
        },
    ],
};

#[cfg(test)]
pub(crate) mod tests;

//! The rules, one file for each section or concern of the specification.

mod account;
mod auth;
mod backups;
mod body;
mod capacity;
mod catalogue;
mod concurrency;
mod conditional;
mod create_bounds;
mod create_fields;
mod delete;
mod details;
mod events;
mod exhausted;
mod fields;
mod flavors;
mod gpu;
mod http;
mod identification;
mod key_kinds;
mod keys;
mod list;
mod money;
mod names;
mod object;
mod order;
mod owners;
mod ports;
mod preferences;
mod public_key;
mod quota;
mod rename;
mod resize;
mod restart;
mod s3;
mod service;
mod shares;
mod snapshot_plans;
mod snapshot_uses;
mod snapshots;
mod staged;
mod states;
mod stats;
mod stop;
mod transport;
mod volume_mounts;
mod volume_shares;
mod volumes;
mod webhooks;

use super::check::Check;

/// All checks.
pub fn all() -> Vec<Check> {
    [
        identification::checks(),
        names::checks(),
        object::checks(),
        fields::checks(),
        flavors::checks(),
        capacity::checks(),
        states::checks(),
        staged::checks(),
        list::checks(),
        create_fields::checks(),
        create_bounds::checks(),
        body::checks(),
        s3::checks(),
        gpu::checks(),
        public_key::checks(),
        key_kinds::checks(),
        events::checks(),
        keys::checks(),
        rename::checks(),
        resize::checks(),
        stop::checks(),
        restart::checks(),
        delete::checks(),
        ports::checks(),
        stats::checks(),
        auth::checks(),
        owners::checks(),
        money::checks(),
        concurrency::checks(),
        conditional::checks(),
        transport::checks(),
        service::checks(),
        http::checks(),
        order::checks(),
        details::checks(),
        exhausted::checks(),
        preferences::checks(),
        quota::checks(),
        catalogue::checks(),
        account::checks(),
        webhooks::checks(),
        shares::checks(),
        volumes::checks(),
        volume_mounts::checks(),
        volume_shares::checks(),
        snapshots::checks(),
        snapshot_uses::checks(),
        snapshot_plans::checks(),
        backups::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

//! Settings of earlier versions that are constants now.

use toml::de::{DeTable, DeValue};

/// Their dotted keys. A file that has one still loads, with a warning that names it.
const RETIRED: &[&str] = &[
    "clock.max_step_s",
    "limits.answer_cache_mib",
    "limits.body_timeout_ms",
    "limits.connections_per_local_peer",
    "limits.event_streams",
    "limits.header_timeout_ms",
    "limits.queue_per_node",
    "limits.request_burst",
    "limits.request_burst_per_user",
    "limits.shutdown_timeout_ms",
    "limits.streams_per_connection",
    "pages.connections_per_page",
    "pages.connections_per_user",
    "pages.threads",
    "retention.keys_days",
];

/// Takes these settings out of a file, and returns those that it has.
pub fn take(file: &mut DeTable) -> Vec<String> {
    let mut is_in_file = |setting: &&&str| {
        let (table, key) = setting.split_once('.')?;
        match file.get_mut(table)?.get_mut() {
            DeValue::Table(table) => table.remove(key),
            _ => None,
        }
    };
    let found = RETIRED
        .iter()
        .filter(|setting| is_in_file(setting).is_some());
    found.map(|setting| (*setting).to_owned()).collect()
}

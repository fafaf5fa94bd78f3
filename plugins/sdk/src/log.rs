//! Lines for the operator's log.

/// Writes a formatted line at a [`Level`](crate::Level), given as its variant's name.
///
/// ```ignore
/// wharf_guest::log!(Warn, "network {name} is left behind: {reason}");
/// ```
#[macro_export]
macro_rules! log {
    ($level:ident, $($message:tt)+) => {
        $crate::write_log($crate::Level::$level, &::std::format!($($message)+))
    };
}

/// Writes one line to the operator's log. Outside a host, as in native tests, it goes to stderr.
pub fn write_log(level: crate::Level, message: &str) {
    #[cfg(target_family = "wasm")]
    crate::bindings::node_driver::wharf::plugin::log::write(level, message);
    #[cfg(not(target_family = "wasm"))]
    eprintln!("{level:?}: {message}");
}

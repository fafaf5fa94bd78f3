//! A damaged file makes redb return an error in most cases, and panic in the rest. Either becomes a
//! message.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    /// The place of the last panic.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Whether a panic of redb ends the process.
static EXIT: AtomicBool = AtomicBool::new(false);

/// Ends the process with a message when redb panics outside of [`guarded`], where only a damaged file
/// makes it panic.
pub fn exit_on_damage() {
    EXIT.store(true, Ordering::Relaxed);
}

fn is_of_redb(panic: &PanicHookInfo<'_>) -> bool {
    let file = panic.location().map_or("", |place| place.file());
    file.split('/').any(|part| part.starts_with("redb-"))
}

/// Runs `f`. A panic becomes its message, and is not printed.
pub fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if GUARDED.get() {
                let place = panic.location().map(ToString::to_string);
                PLACE.set(place.unwrap_or_default());
            } else if EXIT.load(Ordering::Relaxed) && is_of_redb(panic) {
                // Unwinding would drop values of redb that panic again, which aborts the process.
                let _ = writeln!(
                    std::io::stderr(),
                    "wharf: the database is damaged; keep it, and restore a backup: {} at {}",
                    panic.payload_as_str().unwrap_or("no reason given"),
                    panic
                        .location()
                        .map(ToString::to_string)
                        .unwrap_or_default()
                );
                std::process::exit(1);
            } else {
                others(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(f));
    GUARDED.set(outer);
    done.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("no reason given");
        format!("{text} at {}", PLACE.take())
    })
}

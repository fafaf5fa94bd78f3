//! A damaged file makes redb return an error in most cases, and panic in the rest. Either becomes a
//! message.

use parking_lot::Mutex;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    /// Panics since the guarded code began.
    static PANICS: Cell<u32> = const { Cell::new(0) };
    /// The place of the last panic.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Whether a panic of redb ends the process.
static EXIT: AtomicBool = AtomicBool::new(false);

/// The file that was opened last, for the message.
static FILE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Notes the file that is read from now on.
pub fn opening(path: &Path) {
    *FILE.lock() = Some(path.to_owned());
}

/// The words about a damaged database.
pub fn damage(path: Option<&Path>, why: &str) -> String {
    let path = path.map(|path| format!(" {}", path.display()));
    format!(
        "the database{} is damaged; keep it, see what `wharf fsck` finds, and restore a backup with \
         `wharf restore`: {why}",
        path.unwrap_or_default()
    )
}

/// Ends the process with a message when redb panics outside of [`guarded`], where only a damaged file
/// makes it panic. A second panic that follows a first one within it ends the process too.
pub fn exit_on_damage() {
    EXIT.store(true, Ordering::Relaxed);
}

fn is_of_redb(panic: &PanicHookInfo<'_>) -> bool {
    let file = panic.location().map_or("", |place| place.file());
    file.split('/').any(|part| part.starts_with("redb-"))
}

/// Runs `f`. A panic becomes its message, and is not printed.
pub fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    let before = enter();
    let done = catch_unwind(AssertUnwindSafe(f));
    leave(before);
    done.map_err(|panic| message(&*panic))
}

/// Begins guarded code. Returns what [`leave`] takes.
fn enter() -> (bool, u32) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            let exits = EXIT.load(Ordering::Relaxed);
            if GUARDED.get() && !(exits && PANICS.replace(PANICS.get() + 1) > 0) {
                let place = panic.location().map(ToString::to_string);
                PLACE.set(place.unwrap_or_default());
            } else if exits && (GUARDED.get() || is_of_redb(panic)) {
                // A second panic while the first one unwinds aborts the process, and unwinding would
                // drop values of redb that panic again.
                let reason = panic.payload_as_str().unwrap_or("no reason given");
                let place = panic.location().map(ToString::to_string);
                let why = format!("{reason} at {}", place.unwrap_or_default());
                // A thread that holds the lock has panicked itself.
                let file = FILE.try_lock().and_then(|file| file.clone());
                let message = damage(file.as_deref(), &why);
                let _ = writeln!(std::io::stderr(), "wharf: {message}");
                std::process::exit(1);
            } else {
                others(panic);
            }
        }));
    });
    (GUARDED.replace(true), PANICS.replace(0))
}

fn leave((outer, panics): (bool, u32)) {
    GUARDED.set(outer);
    PANICS.set(panics);
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no reason given");
    format!("{text} at {}", PLACE.take())
}

#[cfg(test)]
mod tests {
    use super::{exit_on_damage, guarded};
    use crate::backup::backup;
    use crate::open::{open, path_in};
    use crate::tests::SCHEMA;
    use std::path::Path;
    use std::process::Command;

    const CHILD: &str = "WHARF_TEST_OF_A_SECOND_PANIC";

    struct PanicsAgain;

    impl Drop for PanicsAgain {
        fn drop(&mut self) {
            panic!("second");
        }
    }

    #[test]
    fn a_second_panic_ends_the_process_with_a_message() {
        if let Some(dir) = std::env::var_os(CHILD) {
            let dir = Path::new(&dir);
            let file = open(dir, 0, &SCHEMA).unwrap();
            // Neither its draft nor a backup is the file that the message names.
            backup(&file.rows, &dir.join("backup"), SCHEMA.format(), || true).unwrap();
            exit_on_damage();
            let first = guarded(|| -> () { panic!("first") });
            assert!(first.unwrap_err().contains("first"));
            let _ = guarded(|| {
                let _again = PanicsAgain;
                panic!("first");
            });
            unreachable!("the process has ended");
        }
        let name = "guard::tests::a_second_panic_ends_the_process_with_a_message";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let dir = std::env::temp_dir().join(format!("wharf-db-guard-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        child.args([name, "--exact", "--nocapture"]);
        child.env(CHILD, &dir);
        let ended = child.output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        let said = String::from_utf8_lossy(&ended.stderr);
        let first = format!("wharf: the database {} is damaged", path_in(&dir).display());
        assert!(said.contains(&first), "{said}");
        assert!(said.contains("`wharf fsck`"), "{said}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

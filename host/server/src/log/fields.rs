//! The text form of fields. Text from engines and plugins may hold line breaks and escape sequences.
//! They are escaped, so that an event stays on one line and does not control a terminal.
//!
//! The library's own form escapes escape sequences, but no line breaks.

use std::fmt::{self, Write};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::debug_fn;

/// The library's form of fields, with all control characters escaped.
pub fn escaped() -> impl for<'a> FormatFields<'a> + Send + Sync + 'static {
    debug_fn(|out, field, value| {
        let mut out = Escape(out);
        match field.name() {
            "message" => write!(out, "{value:?}"),
            name => write!(out, "{name}={value:?}"),
        }
    })
    .delimited(" ")
}

struct Escape<'a, W>(&'a mut W);

impl<W: Write> Write for Escape<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(char::is_control) {
            match part.char_indices().next_back() {
                Some((at, last)) if last.is_control() => {
                    self.0.write_str(part.get(..at).unwrap_or_default())?;
                    write!(self.0, "{}", last.escape_default())?;
                }
                _ => self.0.write_str(part)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::escaped;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that `log` logs, in our form or in the library's.
    fn logged(log: impl Fn(), ours: bool) -> String {
        let lines = SharedBuffer::default();
        let writer = lines.clone();
        let library = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .without_time()
            .with_max_level(tracing::Level::TRACE);
        if ours {
            let subscriber = library.fmt_fields(escaped()).finish();
            tracing::subscriber::with_default(subscriber, log);
        } else {
            tracing::subscriber::with_default(library.finish(), log);
        }
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn plain_lines_are_as_the_librarys() {
        let why = io::Error::other("no room");
        let log = || {
            tracing::info!(
                target: "wharf::request",
                request_id = "a-1",
                method = %"GET",
                status = 200_u16,
                ms = 0.125,
                user = Some(7_u64),
                absent = None::<u64>,
            );
            tracing::warn!(n = -3, done = true, %why, kind = ?why.kind(), "tried {}", "again");
            tracing::error!(text = "with \"quotes\"", "a message");
            tracing::debug_span!("outer", id = 7).in_scope(|| tracing::debug!("inside"));
            tracing::trace!("");
        };
        let text = logged(log, true);
        assert_eq!(text, logged(log, false));
        assert_eq!(text.lines().count(), 5);
    }

    #[test]
    fn control_characters_are_escaped() {
        let hostile = "one\r\ntwo\u{1b}[2J\u{7}\u{9b}é";
        let log = || {
            let span = tracing::warn_span!("span", why = %hostile);
            span.in_scope(|| tracing::warn!(why = %hostile, quoted = hostile, "said {hostile}"));
        };
        let text = logged(log, true);
        assert_eq!(text.lines().count(), 1);
        assert!(
            !text.trim_end_matches('\n').contains(char::is_control),
            "{text:?}"
        );
        let plain = r"why=one\r\ntwo\u{1b}[2J\u{7}\u{9b}é";
        assert_eq!(text.matches(plain).count(), 2, "{text}");
        let quoted = r#"quoted="one\r\ntwo\u{1b}[2J\u{7}\u{9b}é""#;
        assert!(text.contains(quoted), "{text}");
    }
}

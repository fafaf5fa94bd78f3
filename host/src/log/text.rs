//! Lines of text: time, level, target, message, fields. They look as the library's own do; but every
//! request has one, so that little of it goes through formatting that can do everything.

use chrono::DateTime;
use std::cell::Cell;
use std::fmt::{self, Debug, Write};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// See the module.
pub struct Text;

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // What is logged on the way, by what is being formatted, finds an empty one.
        let mut line = LINE.take();
        line.clear();
        time(&mut line);
        let metadata = event.metadata();
        line.push_str(level(*metadata.level()));
        let spans = context.event_scope().into_iter();
        for span in spans.flat_map(|scope| scope.from_root()) {
            line.push_str(span.name());
            line.push_str(": ");
        }
        line.push_str(metadata.target());
        line.push(':');
        let mut fields = Fields {
            out: &mut line,
            result: Ok(()),
        };
        event.record(&mut fields);
        fields.result?;
        line.push('\n');
        let written = out.write_str(&line);
        LINE.set(line);
        written
    }
}

/// As wide as the widest, with a space on either side.
fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => " ERROR ",
        Level::WARN => "  WARN ",
        Level::INFO => "  INFO ",
        Level::DEBUG => " DEBUG ",
        Level::TRACE => " TRACE ",
    }
}

/// `2026-11-20T19:55:44`
type Second = [u8; 19];

thread_local! {
    /// The second that this thread last wrote, and its text.
    static SECOND: Cell<(u64, Second)> = const { Cell::new((u64::MAX, [b'0'; 19])) };
    /// A line is put together here: each piece that is handed to the library is a call of its own.
    static LINE: Cell<String> = const { Cell::new(String::new()) };
}

/// UTC, to the microsecond.
fn time(out: &mut String) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let (mut second, mut text) = SECOND.get();
    if second != now.as_secs() {
        second = now.as_secs();
        text = text_of(second);
        SECOND.set((second, text));
    }
    out.push_str(str::from_utf8(&text).unwrap_or_default());
    // With a digit before, none of the others is left out.
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(1_000_000 + now.subsec_micros());
    out.push('.');
    out.push_str(digits.get(1..).unwrap_or_default());
    out.push('Z');
}

fn text_of(second: u64) -> Second {
    let at = i64::try_from(second)
        .ok()
        .and_then(|s| DateTime::from_timestamp(s, 0));
    let text = at.unwrap_or_default().format("%Y-%m-%dT%H:%M:%S");
    text.to_string()
        .into_bytes()
        .try_into()
        .unwrap_or([b'0'; 19])
}

struct Fields<'a> {
    out: &'a mut String,
    result: fmt::Result,
}

impl Fields<'_> {
    /// After the field's name; the message has none.
    fn write(&mut self, field: &Field, value: impl FnOnce(&mut String) -> fmt::Result) {
        self.out.push(' ');
        if field.name() != "message" {
            self.out.push_str(field.name());
            self.out.push('=');
        }
        self.result = self.result.and(value(self.out));
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.write(field, |out| {
            if !value.bytes().all(is_plain) {
                return write!(out, "{value:?}");
            }
            out.push('"');
            out.push_str(value);
            out.push('"');
            Ok(())
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write(field, |out| {
            out.push_str(itoa::Buffer::new().format(value));
            Ok(())
        });
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        let thousandths = (value * 1e3).round();
        // Exact: a whole number of thousandths that is not too large to have a place behind the point.
        let short = value.is_sign_positive() && thousandths < 1e12 && thousandths / 1e3 == value;
        self.write(field, |out| match short {
            true => {
                decimal(out, thousandths as u64);
                Ok(())
            }
            false => write!(out, "{value:?}"),
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.write(field, |out| write!(OneLine(out), "{value:?}"));
    }
}

/// Thousandths as a decimal number with one place at least.
fn decimal(out: &mut String, thousandths: u64) {
    out.push_str(itoa::Buffer::new().format(thousandths / 1000));
    out.push('.');
    // With a digit before, none of the others is left out.
    let mut places = itoa::Buffer::new();
    let places = places
        .format(1000 + thousandths % 1000)
        .get(1..)
        .unwrap_or_default();
    let (first, rest) = places.split_at(1);
    out.push_str(first);
    out.push_str(rest.trim_end_matches('0'));
}

/// Stands for itself between quotes.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Whatever an engine or a plugin has said, it stays on its line and does nothing to a terminal.
struct OneLine<'a>(&'a mut String);

impl Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(char::is_control) {
            match part.char_indices().next_back() {
                Some((at, last)) if last.is_control() => {
                    self.0.push_str(part.get(..at).unwrap_or_default());
                    write!(self.0, "{}", last.escape_default())?;
                }
                _ => self.0.push_str(part),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Text;
    use crate::log::kept::Kept;
    use std::io;

    fn logged(log: impl Fn()) -> (String, String) {
        let both = [true, false].map(|ours| {
            let kept = Kept::default();
            let writer = kept.clone();
            let library = tracing_subscriber::fmt()
                .with_writer(move || writer.clone())
                .with_ansi(false)
                .with_max_level(tracing::Level::TRACE);
            if ours {
                tracing::subscriber::with_default(library.event_format(Text).finish(), &log);
            } else {
                tracing::subscriber::with_default(library.finish(), &log);
            }
            kept.text()
        });
        both.into()
    }

    /// Without the time, after a look at its form.
    fn untimed(text: &str) -> String {
        let line = |line: &str| {
            let (time, rest) = line.split_once('Z').unwrap();
            assert_eq!(time.len(), "2026-11-20T19:55:44.123456".len(), "{line}");
            assert!(chrono::DateTime::parse_from_rfc3339(&format!("{time}Z")).is_ok());
            format!("{rest}\n")
        };
        text.lines().map(line).collect()
    }

    #[test]
    fn lines_are_as_the_librarys() {
        let why = io::Error::other("no room");
        let (ours, theirs) = logged(|| {
            tracing::info!(
                target: "wharf::request",
                id = "a-1",
                method = %"GET",
                status = 200_u16,
                ms = 0.125,
                user = Some(7_u64),
                absent = None::<u64>,
            );
            tracing::warn!(n = -3, done = true, %why, kind = ?why.kind(), "tried {}", "again");
            for ms in [
                0.0,
                -0.0,
                0.001,
                12.0,
                12.5,
                1234.567,
                0.1 + 0.2,
                -1.5,
                1e15,
                1e300,
                f64::NAN,
            ] {
                tracing::info!(ms);
            }
            tracing::error!(text = "with \"quotes\"", "a message");
            tracing::debug_span!("outer").in_scope(|| tracing::debug!("inside"));
            tracing::trace!("");
        });
        assert_eq!(untimed(&ours), untimed(&theirs));
        assert_eq!(ours.lines().count(), 16);
    }

    #[test]
    fn what_is_logged_stays_on_its_line() {
        let said = "one\ntwo\u{1b}[2J\u{7}é";
        let (ours, _) = logged(|| tracing::warn!(why = %said, quoted = said, "said {said}"));
        assert_eq!(ours.lines().count(), 1);
        assert!(!ours.trim_end().contains(char::is_control), "{ours:?}");
        assert!(ours.contains(r"why=one\ntwo\u{1b}[2J\u{7}é"), "{ours}");
    }
}

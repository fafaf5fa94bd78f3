//! `GET /api/instance/{uuid}/terminal/`: the query, and the text messages of both sides.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use wharf_domain::error::FieldErrors;
use wharf_instances::TerminalRequest;
use wharf_terminal::{AttachmentEvent, TerminalEnd, TerminalSize};

/// The size of a terminal whose client gives none.
const DEFAULT: TerminalSize = TerminalSize { cols: 80, rows: 24 };

/// The most columns and rows.
const MAX: u16 = 1000;

/// Reads the query parameters. Unknown ones are ignored.
pub fn parse<'a>(
    query: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
) -> Result<TerminalRequest, FieldErrors> {
    let mut errors = FieldErrors::default();
    let (mut cols, mut rows, mut session) = (None, None, None);
    for (name, value) in query {
        let first = match &*name {
            "cols" => cols.replace(value).is_none(),
            "rows" => rows.replace(value).is_none(),
            "session" => session.replace(value).is_none(),
            _ => true,
        };
        if !first {
            errors.add(&name, "must be given once");
        }
    }
    let mut number = |name, given: Option<Cow<str>>, default| match given {
        None => default,
        Some(text) => match text.parse().ok().filter(|n| (1..=MAX).contains(n)) {
            Some(number) => number,
            None => {
                errors.add(name, "must be an integer from 1 to 1000");
                default
            }
        },
    };
    let size = TerminalSize {
        cols: number("cols", cols, DEFAULT.cols),
        rows: number("rows", rows, DEFAULT.rows),
    };
    errors.into_result()?;
    Ok(TerminalRequest {
        size,
        session: session.map(Cow::into_owned),
    })
}

/// A text message of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// The size of the window has changed.
    Resize(WireSize),
    /// `true` ends the terminal.
    End(bool),
    /// `true` holds back all output until `false`.
    Pause(bool),
}

/// A size in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireSize {
    cols: u16,
    rows: u16,
}

impl WireSize {
    /// The size, if it is in range.
    pub fn size(self) -> Option<TerminalSize> {
        let Self { cols, rows } = self;
        let range = 1..=MAX;
        (range.contains(&cols) && range.contains(&rows)).then_some(TerminalSize { cols, rows })
    }
}

/// Reads a text message.
pub fn control(text: &str) -> Result<Control, &'static str> {
    const EXPECTED: &str = "A text message must be {\"resize\": {\"cols\", \"rows\"}} with integers \
                            from 1 to 1000, {\"end\": true} or {\"pause\": true or false}.";
    let control = serde_json::from_str(text).map_err(|_| EXPECTED)?;
    match control {
        Control::Resize(size) if size.size().is_none() => Err(EXPECTED),
        control => Ok(control),
    }
}

/// A text message of the server.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Notice<'a> {
    Session { session: &'a str, replayed: u64 },
    Exit { exit: Option<u32> },
    Error { error: &'a str },
}

impl Notice<'_> {
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The last message about an end or another client; there is none about the client's own wish.
pub fn notice(event: &AttachmentEvent) -> Option<Notice<'static>> {
    let error = match event {
        AttachmentEvent::Output(_) | AttachmentEvent::End(TerminalEnd::Closed) => return None,
        AttachmentEvent::End(TerminalEnd::Exited(exit)) => {
            return Some(Notice::Exit { exit: *exit });
        }
        AttachmentEvent::End(TerminalEnd::Unreachable) => {
            "The SSH server of the instance could not be reached."
        }
        AttachmentEvent::End(TerminalEnd::HostKey) => {
            "The instance shows another SSH host key than the known one, so Wharf did not sign in. \
             If you replaced the key, stop and restart the instance."
        }
        AttachmentEvent::End(TerminalEnd::Password) => {
            "Sign-in was refused: the instance does not accept its original password any more. Log in \
             over SSH with your key or your new password, or set the original password again."
        }
        AttachmentEvent::End(TerminalEnd::NoShell) => {
            "The SSH server of the instance opened no shell."
        }
        AttachmentEvent::End(TerminalEnd::Lost) => "The connection to the instance was lost.",
        AttachmentEvent::End(TerminalEnd::Unattended) => "The terminal had no client for too long.",
        AttachmentEvent::End(TerminalEnd::Access) => {
            "The key or session of this terminal is not valid any more."
        }
        AttachmentEvent::End(TerminalEnd::NotRunning) => "The instance is not running any more.",
        AttachmentEvent::End(TerminalEnd::Shutdown) => "The service stops; connect again shortly.",
        AttachmentEvent::Replaced => "The terminal was opened elsewhere.",
    };
    Some(Notice::Error { error })
}

#[cfg(test)]
mod tests {
    use super::{Control, control, notice, parse};
    use wharf_terminal::{AttachmentEvent, TerminalEnd, TerminalSize};

    fn parsed(query: &str) -> Result<(u16, u16, Option<String>), Vec<String>> {
        let request = parse(form_urlencoded::parse(query.as_bytes()));
        request
            .map(|r| (r.size.cols, r.size.rows, r.session))
            .map_err(|errors| errors.0.into_keys().collect())
    }

    #[test]
    fn queries() {
        assert_eq!(parsed(""), Ok((80, 24, None)));
        let session = Some("a b".to_owned());
        assert_eq!(
            parsed("cols=120&rows=1&session=a+b&x=1"),
            Ok((120, 1, session))
        );
        let both = ["cols".to_owned(), "rows".to_owned()];
        for wrong in ["cols=0&rows=1001", "cols=x&rows=", "cols=1&cols=1&rows=-1"] {
            assert_eq!(parsed(wrong), Err(both.to_vec()), "{wrong}");
        }
        assert_eq!(parsed("session=a&session=a").unwrap_err(), ["session"]);
    }

    #[test]
    fn messages_of_clients() {
        let Ok(Control::Resize(size)) = control(r#"{"resize": {"cols": 7, "rows": 9}}"#) else {
            panic!("no resize");
        };
        assert_eq!(size.size(), Some(TerminalSize { cols: 7, rows: 9 }));
        assert_eq!(control(r#"{"end": true}"#), Ok(Control::End(true)));
        assert_eq!(control(r#"{"pause": false}"#), Ok(Control::Pause(false)));
        for wrong in [
            "",
            "{}",
            r#"{"resize": {"cols": 7}}"#,
            r#"{"resize": {"cols": 0, "rows": 9}}"#,
            r#"{"resize": {"cols": 70000, "rows": 9}}"#,
            r#"{"resize": {"cols": 7, "rows": 9}, "end": true}"#,
            r#"{"other": 1}"#,
        ] {
            assert!(control(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn messages_of_the_server() {
        let text = |event| notice(&event).map(|notice| notice.text());
        let exit = |code| text(AttachmentEvent::End(TerminalEnd::Exited(code))).unwrap();
        assert_eq!(exit(Some(3)), r#"{"exit":3}"#);
        assert_eq!(exit(None), r#"{"exit":null}"#);
        assert_eq!(text(AttachmentEvent::End(TerminalEnd::Closed)), None);
        let lost = text(AttachmentEvent::End(TerminalEnd::Lost)).unwrap();
        assert!(lost.starts_with(r#"{"error":""#), "{lost}");
    }
}

//! Requests that run a program beside a container's first process.

use super::{Api, Reply, accepted};
use serde::Deserialize;
use wharf_guest::Error;
use wharf_guest::NamedRequest;

/// Time limit of the program, ms.
const RUN_MS: u32 = 15_000;
/// Maximum length of the output that is kept, in characters.
const MAX_OUTPUT: usize = 500;
/// Size of a frame's header: the stream's number and the frame's length.
const FRAME: usize = 8;

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The exit code.
    pub code: i64,
    /// The output of both streams.
    pub output: String,
}

#[derive(Deserialize)]
struct Made {
    #[serde(rename = "Id")]
    id: String,
}

#[derive(Deserialize)]
struct ExecState {
    #[serde(rename = "ExitCode", default)]
    exit_code: Option<i64>,
}

impl Api<'_> {
    /// Runs the program that sets the ports of a virtual machine, as the user of the container's first
    /// process, and waits for its end.
    pub fn set_ports(&self, container: &str) -> Result<Reply<Ended>, Error> {
        let prepare = NamedRequest::new("prepare-ports").with("container", container);
        let made: Made = match self.read(&prepare)? {
            Ok(made) => made,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let program = |request| NamedRequest::new(request).with("program", &made.id);
        let start = program("set-ports").timeout_ms(RUN_MS);
        let output = match accepted(start.send(self.engine)?) {
            Ok(answer) => unframed(&answer.body),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let state: Reply<ExecState> = self.read(&program("read-program"))?;
        Ok(state.map(|state| Ended {
            code: state.exit_code.unwrap_or(-1),
            output,
        }))
    }
}

/// Extracts the text of a framed stream.
fn unframed(stream: &[u8]) -> String {
    let mut text = Vec::new();
    let mut rest = stream;
    while let Some((head, tail)) = rest.split_at_checked(FRAME) {
        let length = head.last_chunk::<4>().map_or(0, |n| u32::from_be_bytes(*n));
        let length = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(tail.len());
        let (piece, next) = tail.split_at(length);
        text.extend_from_slice(piece);
        rest = next;
    }
    let text = String::from_utf8_lossy(&text);
    text.trim().chars().take(MAX_OUTPUT).collect()
}

#[cfg(test)]
mod tests {
    use super::unframed;

    #[test]
    fn both_streams_are_one_text() {
        let stream = b"\x01\0\0\0\0\0\0\x03one\x02\0\0\0\0\0\0\x05 two\n";
        assert_eq!(unframed(stream), "one two");
        assert_eq!(unframed(b"\x01\0\0\0\0\0\0\xffcut"), "cut");
        assert_eq!(unframed(b"short"), "");
    }
}

//! The output of a build or import: JSON lines in a 200 response, which may report a failure.

use crate::http::{HttpClient, Request};
use crate::progress;
use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Sends a request and prints its progress; fails if a line of the response is an error.
pub(crate) fn follow(engine: &HttpClient, request: Request<'_>) -> Result<()> {
    let mut lines = Lines::default();
    let status = engine.stream(request, |chunk| {
        lines.push(chunk);
        Ok(())
    })?;
    lines.finish();
    if let Some(error) = lines.error {
        bail!("{error}");
    }
    if !(200..300).contains(&status) {
        bail!(
            "the engine responds with {status}: {}",
            lines.last.context("nothing")?
        );
    }
    Ok(())
}

#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
    last: Option<String>,
    error: Option<String>,
}

impl Lines {
    fn push(&mut self, chunk: &[u8]) {
        self.rest.extend_from_slice(chunk);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.line(&line);
        }
    }

    fn finish(&mut self) {
        let line = std::mem::take(&mut self.rest);
        self.line(&line);
    }

    fn line(&mut self, line: &[u8]) {
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return;
        };
        if let Some(error) = value
            .pointer("/errorDetail/message")
            .or_else(|| value.get("error"))
        {
            self.error = Some(error.as_str().unwrap_or("unknown error").to_owned());
        }
        let text = ["stream", "status", "message"]
            .into_iter()
            .find_map(|key| value.get(key)?.as_str());
        let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
            return;
        };
        // Layers report progress every few kilobytes.
        if self.last.as_deref() != Some(text) && value.get("progressDetail").is_none() {
            progress::note(text);
        }
        self.last = Some(text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn an_error_is_found_in_any_chunks() {
        let response = b"{\"status\":\"Pulling\"}\n{\"errorDetail\":{\"message\":\"no such tag\"}}";
        for cut in 0..response.len() {
            let mut lines = Lines::default();
            let (head, tail) = response.split_at(cut);
            lines.push(head);
            lines.push(tail);
            lines.finish();
            assert_eq!(lines.error.as_deref(), Some("no such tag"));
        }
    }
}

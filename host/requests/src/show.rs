//! A written request as text, for a review. It has files by name and size, and no secret.

use super::{Rendered, RenderedBody, Targets};
use serde_json::Value;
use std::fmt::{self, Write as _};
use wharf_domain::blueprint::{BlueprintFile, FileContent};

/// A text of a file on one line. Control characters and marks of the direction of text are escaped: they
/// would hide words from the reader.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let hides = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if c.is_control() || hides {
            // Writing to a text cannot fail.
            let _ = write!(shown, "{}", c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A text of several lines, each with its characters escaped.
pub fn escaped_lines(text: &str) -> String {
    let lines = text.split('\n').map(escaped);
    lines.collect::<Vec<_>>().join("\n")
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            writeln!(f, "GET {}", source.read)?;
            let mut changes = source.changes.iter();
            changes.try_for_each(|changes| writeln!(f, "GET {changes}"))?;
        }
        let method = if self.image.is_empty() { "PUT" } else { "POST" };
        let mut write = self.write.iter();
        write.try_for_each(|write| writeln!(f, "{method} {write}"))?;
        let mut below = self.below.iter();
        below.try_for_each(|below| writeln!(f, "below {below} of the archive"))?;
        let mut image = self.image.iter();
        image.try_for_each(|(path, text)| writeln!(f, "{path}: {}", text.trim_end()))
    }
}

impl fmt::Display for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.method, self.target)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        if let Some(registry) = &self.credentials {
            writeln!(
                f,
                "with the operator's credentials for {registry}, if there are any"
            )?;
        }
        match &self.body {
            RenderedBody::None => Ok(()),
            RenderedBody::Noise => writeln!(f, "\n10 MiB of random bytes"),
            RenderedBody::Json(text) => {
                let pretty = serde_json::from_str::<Value>(text).map(|body| format!("{body:#}"));
                writeln!(f, "\n{}", pretty.as_ref().unwrap_or(text))
            }
            RenderedBody::Archive(files) => {
                writeln!(f, "\nAn archive of these files:")?;
                files.iter().try_for_each(|file| write_file(f, file))
            }
            RenderedBody::File(file) => {
                writeln!(f, "\nThe file:")?;
                write_file(f, file)
            }
        }
    }
}

fn write_file(f: &mut fmt::Formatter<'_>, file: &BlueprintFile) -> fmt::Result {
    let path = &file.path;
    match &file.content {
        FileContent::Bytes(content) => writeln!(f, "  {path}, {} bytes", content.len()),
        FileContent::Secret(_) | FileContent::SecretCrypt(_) => writeln!(f, "  {path}, a secret"),
    }
}

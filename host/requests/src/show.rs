//! A written request as text, for a review. It has files by name and size, and no secret.

use super::{Body, Rendered, Targets};
use serde_json::Value;
use std::fmt;
use wharf_domain::blueprint::{Content, File};

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "GET {}", self.read)?;
        writeln!(f, "GET {}", self.changes)?;
        writeln!(f, "PUT {}", self.write)
    }
}

impl fmt::Display for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.method, self.target)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        match &self.body {
            Body::None => Ok(()),
            Body::Json(text) => {
                let pretty = serde_json::from_str::<Value>(text).map(|body| format!("{body:#}"));
                writeln!(f, "\n{}", pretty.as_ref().unwrap_or(text))
            }
            Body::Archive(files) => {
                writeln!(f, "\nAn archive of these files:")?;
                files.iter().try_for_each(|file| write_file(f, file))
            }
            Body::File(file) => {
                writeln!(f, "\nThe file:")?;
                write_file(f, file)
            }
        }
    }
}

fn write_file(f: &mut fmt::Formatter<'_>, file: &File) -> fmt::Result {
    let path = &file.path;
    match &file.content {
        Content::Bytes(content) => writeln!(f, "  {path}, {} bytes", content.len()),
        Content::Secret(_) | Content::SecretCrypt(_) => writeln!(f, "  {path}, a secret"),
    }
}

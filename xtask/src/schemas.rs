//! `cargo xtask schemas [--check]`: generates `schemas/generated/openapi.json` from `schemas/openapi.yaml`.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;

const SOURCE: &str = "schemas/openapi.yaml";
const TARGET: &str = "schemas/generated/openapi.json";
const COMPONENT: &str = "#/components/schemas/";

/// Writes the file if it is out of date; with `check`, fails then.
pub fn run(root: &Path, check: bool) -> Result<()> {
    let source = root.join(SOURCE);
    let text = fs::read_to_string(&source).with_context(|| format!("cannot read {SOURCE}"))?;
    let document: Value =
        serde_saphyr::from_str(&text).with_context(|| format!("{SOURCE} is not valid YAML"))?;
    check_bodies(&document, &document)?;
    let json = serde_json::to_string_pretty(&document)? + "\n";
    let target = root.join(TARGET);
    if fs::read_to_string(&target).ok().as_ref() == Some(&json) {
        println!("{TARGET} is up to date");
    } else if check {
        bail!("{TARGET} does not match {SOURCE}; run `cargo xtask schemas` and commit the result");
    } else {
        fs::write(&target, json).with_context(|| format!("cannot write {TARGET}"))?;
        println!("wrote {TARGET}");
    }
    Ok(())
}

/// Fails if a body is anything but a reference to a component: bodies have names.
fn check_bodies(value: &Value, document: &Value) -> Result<()> {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                if let ("application/json", Some(schema)) = (key.as_str(), inner.get("schema")) {
                    let reference = schema.get("$ref").and_then(Value::as_str);
                    let component = reference.filter(|reference| reference.starts_with(COMPONENT));
                    let there = component.and_then(|r| document.pointer(r.trim_start_matches('#')));
                    ensure!(
                        there.is_some(),
                        "a body is no {COMPONENT} reference: {schema}"
                    );
                }
                check_bodies(inner, document)?;
            }
        }
        Value::Array(items) => (items.iter()).try_for_each(|item| check_bodies(item, document))?,
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_file_matches_its_source() {
        let workspace = crate::workspace::Workspace::find().unwrap();
        super::run(workspace.root(), true).unwrap();
    }
}

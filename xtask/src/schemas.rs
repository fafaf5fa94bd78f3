//! `cargo xtask schemas [--check]`: generates `schemas/generated/` from `schemas/openapi.yaml`.
//!
//! The source is written by hand. Generated are the document as JSON, and one self-contained JSON
//! Schema (2020-12) for each request and response body.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const SOURCE: &str = "schemas/openapi.yaml";
const TARGET: &str = "schemas/generated";
const COMPONENT: &str = "#/components/schemas/";

/// Writes the files that are out of date; with `check`, fails if there are any.
pub fn run(root: &Path, check: bool) -> Result<()> {
    let source = root.join(SOURCE);
    let text = fs::read_to_string(&source).with_context(|| format!("cannot read {SOURCE}"))?;
    let document: Value =
        serde_saphyr::from_str(&text).with_context(|| format!("{SOURCE} is not valid YAML"))?;
    let files = generate(&document)?;
    let target = root.join(TARGET);
    let mut stale = Vec::new();
    for (name, content) in &files {
        if fs::read_to_string(target.join(name)).ok().as_ref() != Some(content) {
            stale.push(name.clone());
            if !check {
                fs::create_dir_all(&target)?;
                fs::write(target.join(name), content)?;
            }
        }
    }
    for entry in fs::read_dir(&target).with_context(|| format!("cannot read {TARGET}"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !files.contains_key(&name) {
            if !check {
                fs::remove_file(target.join(&name))?;
            }
            stale.push(name);
        }
    }
    if check && !stale.is_empty() {
        bail!(
            "{TARGET} does not match {SOURCE} ({}); run `cargo xtask schemas` and commit the result",
            stale.join(", ")
        );
    }
    match (check, stale.is_empty()) {
        (false, false) => println!("schemas: wrote {}", stale.join(", ")),
        _ => println!("schemas: {} files are up to date", files.len()),
    }
    Ok(())
}

/// Generates the files: name → content.
fn generate(document: &Value) -> Result<BTreeMap<String, String>> {
    let schemas = document
        .pointer("/components/schemas")
        .and_then(Value::as_object)
        .context("components.schemas is missing")?;
    let mut files = BTreeMap::from([("openapi.json".to_owned(), pretty(document)?)]);
    let mut bodies = BTreeSet::new();
    collect_bodies(document, &mut bodies)?;
    for name in bodies {
        let schema = self_contained(&name, schemas)?;
        files.insert(format!("{}.json", kebab(&name)), pretty(&schema)?);
    }
    Ok(files)
}

/// Collects the names of the component schemas that are bodies.
fn collect_bodies(value: &Value, found: &mut BTreeSet<String>) -> Result<()> {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                if let ("application/json", Some(schema)) = (key.as_str(), inner.get("schema")) {
                    let name = schema.get("$ref").and_then(Value::as_str);
                    let name = name.and_then(|r| r.strip_prefix(COMPONENT));
                    found.insert(
                        name.with_context(|| {
                            format!("a body is no {COMPONENT} reference: {schema}")
                        })?
                        .to_owned(),
                    );
                }
                collect_bodies(inner, found)?;
            }
        }
        Value::Array(items) => (items.iter()).try_for_each(|item| collect_bodies(item, found))?,
        _ => {}
    }
    Ok(())
}

/// Returns a schema with every schema it refers to in its `$defs`.
fn self_contained(name: &str, schemas: &Map<String, Value>) -> Result<Value> {
    let mut definitions = Map::new();
    let mut referred = BTreeSet::new();
    let mut schema = component(name, schemas)?;
    localise(&mut schema, &mut referred)?;
    while let Some(next) = referred.pop_first() {
        if definitions.contains_key(&next) {
            continue;
        }
        ensure!(next != name, "{name} refers to itself");
        let mut definition = component(&next, schemas)?;
        localise(&mut definition, &mut referred)?;
        definitions.insert(next, definition);
    }
    let map = schema
        .as_object_mut()
        .context("a schema is not an object")?;
    map.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    map.insert("title".to_owned(), json!(name));
    if !definitions.is_empty() {
        map.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Ok(schema)
}

fn component(name: &str, schemas: &Map<String, Value>) -> Result<Value> {
    schemas
        .get(name)
        .cloned()
        .with_context(|| format!("{COMPONENT}{name} does not exist"))
}

/// Points references at `$defs`, and collects their names.
fn localise(value: &mut Value, referred: &mut BTreeSet<String>) -> Result<()> {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                if key == "$ref" {
                    let name = inner.as_str().and_then(|r| r.strip_prefix(COMPONENT));
                    let name = name
                        .with_context(|| format!("cannot follow {inner}"))?
                        .to_owned();
                    *inner = json!(format!("#/$defs/{name}"));
                    referred.insert(name);
                } else {
                    localise(inner, referred)?;
                }
            }
        }
        Value::Array(items) => (items.iter_mut()).try_for_each(|item| localise(item, referred))?,
        _ => {}
    }
    Ok(())
}

/// Converts `CreateRequest` to `create-request`.
fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn pretty(value: &Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::{kebab, self_contained};
    use serde_json::json;

    #[test]
    fn a_schema_contains_what_it_refers_to() {
        let all = json!({
            "Top": { "properties": { "a": { "$ref": "#/components/schemas/Middle" } } },
            "Middle": { "items": { "$ref": "#/components/schemas/Leaf" } },
            "Leaf": { "type": "integer" },
            "Other": {},
        });
        let schema = self_contained("Top", all.as_object().unwrap()).unwrap();
        assert_eq!(schema["properties"]["a"]["$ref"], "#/$defs/Middle");
        assert_eq!(schema["$defs"]["Middle"]["items"]["$ref"], "#/$defs/Leaf");
        assert_eq!(schema["$defs"]["Leaf"]["type"], "integer");
        assert!(schema["$defs"].get("Other").is_none());
        assert!(self_contained("None", all.as_object().unwrap()).is_err());
    }

    #[test]
    fn the_committed_files_match_their_source() {
        let workspace = crate::workspace::Workspace::find().unwrap();
        super::run(workspace.root(), true).unwrap();
    }

    #[test]
    fn file_names() {
        assert_eq!(kebab("CreateRequest"), "create-request");
    }
}

//! The OpenAPI document, and the schemas of its components.

use super::SchemaError;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use wharf_client::DOCUMENT;

/// The beginning of a reference to a component.
const COMPONENT: &str = "#/components/schemas/";

/// The document.
#[derive(Debug)]
pub struct ApiDocument(Value);

impl ApiDocument {
    pub fn read() -> Result<Self, SchemaError> {
        let read = serde_json::from_str(DOCUMENT);
        read.map(Self)
            .map_err(|error| SchemaError(error.to_string()))
    }

    /// A component as a schema of its own, with the components that it refers to.
    pub fn schema(&self, name: &str) -> Result<Value, SchemaError> {
        let component = self.component(name)?;
        let (mut needed, mut names) = (Map::new(), Vec::new());
        collect(component, &mut names);
        while let Some(next) = names.pop() {
            if !needed.contains_key(next) {
                let part = self.component(next)?;
                collect(part, &mut names);
                needed.insert(next.to_owned(), part.clone());
            }
        }
        let mut schema = component.as_object().cloned().unwrap_or_default();
        schema.insert("components".to_owned(), json!({ "schemas": needed }));
        Ok(schema.into())
    }

    /// The names of the fields of a component and of its parts.
    pub fn fields(&self, name: &str) -> Result<BTreeSet<String>, SchemaError> {
        let component = self.component(name)?;
        let properties = component.get("properties").and_then(Value::as_object);
        let mut names: BTreeSet<String> = properties
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect();
        let parts = component.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten().filter_map(referred) {
            names.append(&mut self.fields(part)?);
        }
        Ok(names)
    }

    fn component(&self, name: &str) -> Result<&Value, SchemaError> {
        let component = self.0.pointer(&format!("/components/schemas/{name}"));
        component.ok_or_else(|| SchemaError(format!("the document has no {name}")))
    }
}

/// The name of the component that a schema refers to.
fn referred(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(COMPONENT)
}

/// Collects the names of the components that a schema and its parts refer to.
fn collect<'a>(schema: &'a Value, names: &mut Vec<&'a str>) {
    names.extend(referred(schema));
    match schema {
        Value::Object(parts) => parts.values().for_each(|part| collect(part, names)),
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, names)),
        _ => {}
    }
}

//! The service's OpenAPI document (3.1), and the validation of responses with it.

use anyhow::{Context, Result, ensure};
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "patch", "head"];

/// The responses that a document describes.
pub struct Document {
    operations: Vec<Operation>,
    seen: Mutex<BTreeSet<(String, u16)>>,
}

struct Operation {
    id: String,
    method: String,
    path: Vec<String>,
    responses: BTreeMap<u16, ResponseSchema>,
}

/// The response of one status.
struct ResponseSchema {
    /// Schema of the body, if there is one.
    body: Option<Arc<Validator>>,
    /// Whether the body is of a type that is not JSON.
    is_other: bool,
    headers: Vec<Header>,
}

struct Header {
    name: String,
    required: bool,
    schema: Arc<Validator>,
}

impl Document {
    /// Reads a document.
    pub fn new(document: &Value) -> Result<Self> {
        let version = document["openapi"].as_str().unwrap_or("");
        ensure!(
            version.starts_with("3.1"),
            "the OpenAPI document is not of version 3.1, whose schemas are JSON Schemas"
        );
        let mut schemas = Schemas::new(document);
        let mut operations = Vec::new();
        for (path, item) in object(&document["paths"]).context("the document has no `paths`")? {
            for (method, operation) in object(item).into_iter().flatten() {
                if METHODS.contains(&method.as_str()) {
                    let one = Operation::new(&mut schemas, path, method, operation);
                    operations.push(one.with_context(|| format!("{method} {path}"))?);
                }
            }
        }
        Ok(Self {
            operations,
            seen: Mutex::default(),
        })
    }

    /// Validates a response. Responses of undocumented paths and methods pass.
    pub fn check(
        &self,
        method: &str,
        path: &str,
        status: u16,
        body: Option<&Value>,
    ) -> Result<(), String> {
        let Some(operation) = self.operation(method, path) else {
            return Ok(());
        };
        let Some(response) = operation.responses.get(&status) else {
            return Err(format!("{} documents no status {status}", operation.id));
        };
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((operation.id.clone(), status));
        match (&response.body, body) {
            (None, None) => Ok(()),
            (None, Some(_)) if response.is_other => Ok(()),
            (None, Some(_)) => Err("the body should be empty".to_owned()),
            (Some(_), None) => Err("the body is missing".to_owned()),
            (Some(schema), Some(body)) => {
                let errors: Vec<String> = schema
                    .iter_errors(body)
                    .map(|error| format!("{} at `{}`", error.masked(), error.instance_path()))
                    .collect();
                if errors.is_empty() {
                    Ok(())
                } else {
                    Err(errors.join(", "))
                }
            }
        }
    }

    /// Validates the headers of a response: required headers are present, and headers have their
    /// documented form.
    pub fn check_headers<'h>(
        &self,
        method: &str,
        path: &str,
        status: u16,
        header: impl Fn(&str) -> Option<&'h str>,
    ) -> Result<(), String> {
        let operation = self.operation(method, path);
        let response = operation.and_then(|o| o.responses.get(&status));
        for documented in response.iter().flat_map(|response| &response.headers) {
            let name = &documented.name;
            match header(name) {
                None if documented.required => return Err(format!("the header {name} is missing")),
                Some(value) if !documented.allows(value) => {
                    return Err(format!(
                        "the header {name} does not have the documented form"
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the document has an operation for the path.
    pub fn describes(&self, method: &str, path: &str) -> bool {
        self.operation(method, path).is_some()
    }

    fn operation(&self, method: &str, path: &str) -> Option<&Operation> {
        let segments = split(path.split('?').next().unwrap_or(path));
        self.operations.iter().find(|o| o.is(method, &segments))
    }

    /// Documented statuses without a response so far: operation and status.
    pub fn unseen(&self) -> Vec<(String, u16)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.operations
            .iter()
            .flat_map(|o| o.responses.keys().map(|status| (o.id.clone(), *status)))
            .filter(|pair| !seen.contains(pair))
            .collect()
    }
}

impl Operation {
    fn new(schemas: &mut Schemas<'_>, path: &str, method: &str, operation: &Value) -> Result<Self> {
        let mut responses = BTreeMap::new();
        for (status, response) in
            object(&operation["responses"]).context("the operation has no `responses`")?
        {
            let response = resolve(schemas.document, response)?;
            let body = match response.pointer("/content/application~1json/schema") {
                Some(schema) => Some(schemas.compile(schema)?),
                None => None,
            };
            let headers = object(&response["headers"])
                .into_iter()
                .flatten()
                .map(|(name, header)| Header::new(schemas, name, header))
                .collect::<Result<_>>()?;
            let status = status
                .parse()
                .with_context(|| format!("status `{status}`"))?;
            let is_other = body.is_none() && response["content"].is_object();
            let response = ResponseSchema {
                body,
                is_other,
                headers,
            };
            responses.insert(status, response);
        }
        let id = operation["operationId"].as_str();
        Ok(Self {
            id: id.map_or_else(|| format!("{method} {path}"), str::to_owned),
            method: method.to_ascii_uppercase(),
            path: split(path).into_iter().map(str::to_owned).collect(),
            responses,
        })
    }

    fn is(&self, method: &str, segments: &[&str]) -> bool {
        self.method == method
            && self.path.len() == segments.len()
            && self.path.iter().zip(segments).all(|(template, segment)| {
                if template.starts_with('{') {
                    !segment.is_empty()
                } else {
                    template == segment
                }
            })
    }
}

impl Header {
    fn new(schemas: &mut Schemas<'_>, name: &str, header: &Value) -> Result<Self> {
        let header = resolve(schemas.document, header)?;
        Ok(Self {
            name: name.to_owned(),
            required: header["required"] == true,
            schema: schemas.compile(&header["schema"])?,
        })
    }

    /// Whether the text matches the schema, as a string or as a number.
    fn allows(&self, text: &str) -> bool {
        let number = text.parse::<u64>().ok().map(Value::from);
        self.schema.is_valid(&Value::from(text)) || number.is_some_and(|n| self.schema.is_valid(&n))
    }
}

fn split(path: &str) -> Vec<&str> {
    path.split('/').collect()
}

fn object(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object()
}

/// Follows a reference within the document.
fn resolve<'d>(document: &'d Value, value: &'d Value) -> Result<&'d Value> {
    let Some(reference) = value["$ref"].as_str() else {
        return Ok(value);
    };
    reference
        .strip_prefix('#')
        .and_then(|pointer| document.pointer(pointer))
        .with_context(|| format!("the reference {reference} has no target"))
}

/// The compiled schemas of a document. Most operations share the schemas of their errors and headers.
struct Schemas<'d> {
    document: &'d Value,
    compiled: BTreeMap<String, Arc<Validator>>,
}

impl<'d> Schemas<'d> {
    fn new(document: &'d Value) -> Self {
        Self {
            document,
            compiled: BTreeMap::new(),
        }
    }

    /// Compiles a schema together with the schemas that it may reference, unless that was done before.
    fn compile(&mut self, schema: &Value) -> Result<Arc<Validator>> {
        let text = schema.to_string();
        if let Some(compiled) = self.compiled.get(&text) {
            return Ok(Arc::clone(compiled));
        }
        let components = &self.document["components"]["schemas"];
        let root = json!({ "allOf": [schema], "components": { "schemas": components } });
        let compiled = jsonschema::draft202012::options()
            .should_validate_formats(true)
            .build(&root)
            .map_err(|error| anyhow::anyhow!("a schema is invalid: {error}"))?;
        let compiled = Arc::new(compiled);
        self.compiled.insert(text, Arc::clone(&compiled));
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use super::Document;
    use serde_json::json;

    #[test]
    fn responses_are_validated() {
        let document = Document::new(&json!({
            "openapi": "3.1.0",
            "paths": { "/a/{id}/": { "parameters": [], "get": {
                "operationId": "getA",
                "responses": {
                    "200": {
                        "headers": { "X-N": { "required": true, "schema": { "type": "integer" } } },
                        "content": { "application/json": {
                            "schema": { "$ref": "#/components/schemas/A" } } },
                    },
                    "204": { "$ref": "#/components/responses/Empty" },
                },
            } } },
            "components": {
                "schemas": { "A": { "type": "object", "required": ["n"],
                    "properties": { "n": { "$ref": "#/components/schemas/N" } } },
                    "N": { "type": "integer" } },
                "responses": { "Empty": {} },
            },
        }))
        .unwrap();
        let check = |path, status, body: Option<serde_json::Value>| {
            document.check("GET", path, status, body.as_ref())
        };
        assert_eq!(check("/a/x/", 200, Some(json!({ "n": 1 }))), Ok(()));
        assert_eq!(document.unseen(), [("getA".to_owned(), 204)]);
        assert!(check("/a/x/?q=1", 200, Some(json!({ "n": "1" }))).is_err());
        assert!(check("/a/x/", 200, None).is_err());
        assert!(check("/a/x/", 204, Some(json!({}))).is_err());
        assert!(check("/a/x/", 500, None).is_err());
        assert_eq!(check("/a/x", 308, None), Ok(()));
        assert_eq!(check("/a//", 404, None), Ok(()));
        let headers = |status, value| document.check_headers("GET", "/a/x/", status, |_| value);
        assert_eq!(headers(200, Some("4")), Ok(()));
        assert!(headers(200, Some("four")).is_err() && headers(200, None).is_err());
        assert_eq!(headers(204, None), Ok(()));
    }
}

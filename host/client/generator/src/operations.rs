//! The methods of the client, one for each operation.

use crate::types::resolve;
use anyhow::{Context, Result};
use heck::{ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use serde_json::Value;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Generates the methods.
pub fn generate(document: &Value) -> Result<TokenStream> {
    let paths = document["paths"].as_object().context("paths are missing")?;
    let mut methods = Vec::new();
    for (path, item) in paths {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                let generated = operation_method(document, path, item, method, operation);
                methods.extend(generated.with_context(|| format!("{method} {path}"))?);
            }
        }
    }
    Ok(quote! {
        use crate::generated::types;
        use crate::{Client, Request};
        use http::Method;

        impl Client { #(#methods)* }
    })
}

/// The method of an operation; none if the operation answers something other than JSON.
fn operation_method(
    document: &Value,
    path: &str,
    item: &Value,
    method: &str,
    operation: &Value,
) -> Result<Option<TokenStream>> {
    let Some(answer) = answer(document, operation)? else {
        return Ok(None);
    };
    let id = operation["operationId"]
        .as_str()
        .context("no operationId")?;
    let name = format_ident!("{}", id.to_snake_case());
    let verb = format_ident!("{}", method.to_uppercase());
    let (mut arguments, mut segments, mut queries) = (Vec::new(), Vec::new(), Vec::new());
    for parameter in parameters(document, item, operation) {
        let wire = parameter["name"]
            .as_str()
            .context("a parameter has no name")?;
        let ident = identifier(&wire.to_snake_case());
        match parameter["in"].as_str() {
            Some("path") => {
                arguments.push(quote!(#ident: &str));
                segments.push(quote!(#ident));
            }
            Some("query") => {
                let of = query_type(document, &parameter["schema"]);
                arguments.push(quote!(#ident: Option<#of>));
                queries.push(quote!(.query(#wire, #ident)));
            }
            _ => {}
        }
    }
    let body = resolve(document, &operation["requestBody"]);
    let json = match component(&body["content"]["application/json"]["schema"]) {
        Some(of) => {
            arguments.push(quote!(body: &#of));
            quote!(.json(body))
        }
        None => quote!(),
    };
    let docs = docs(operation);
    Ok(Some(quote! {
        #(#[doc = #docs])*
        pub fn #name(&self, #(#arguments),*) -> Request<'_, #answer> {
            self.operation(Method::#verb, #path, &[#(#segments),*]) #(#queries)* #json
        }
    }))
}

/// A name, raw if it is a keyword.
fn identifier(name: &str) -> Ident {
    syn::parse_str(name).unwrap_or_else(|_| format_ident!("r#{name}"))
}

/// The type of the body of a successful response.
fn answer(document: &Value, operation: &Value) -> Result<Option<TokenStream>> {
    let responses = operation["responses"].as_object().context("no responses")?;
    let mut success = responses
        .iter()
        .filter(|(status, _)| status.starts_with('2'));
    let Some((_, response)) = success.next() else {
        return Ok(None);
    };
    let content = &resolve(document, response)["content"];
    Ok(
        match (content, component(&content["application/json"]["schema"])) {
            (Value::Null, _) => Some(quote!(())),
            (_, of) => of,
        },
    )
}

fn component(schema: &Value) -> Option<TokenStream> {
    let name = schema["$ref"].as_str()?.rsplit('/').next()?;
    let ident = format_ident!("{}", name.to_upper_camel_case());
    Some(quote!(types::#ident))
}

/// The parameters of a path and of one of its operations.
fn parameters<'d>(
    document: &'d Value,
    item: &'d Value,
    operation: &'d Value,
) -> impl Iterator<Item = &'d Value> {
    let of = |value: &'d Value| value["parameters"].as_array().into_iter().flatten();
    of(item)
        .chain(of(operation))
        .map(|parameter| resolve(document, parameter))
}

fn query_type(document: &Value, schema: &Value) -> TokenStream {
    match resolve(document, schema)["type"].as_str() {
        Some("integer") => quote!(u64),
        Some("boolean") => quote!(bool),
        _ => quote!(&str),
    }
}

/// The lines of a doc comment.
fn docs(operation: &Value) -> Vec<String> {
    let summary = operation["summary"].as_str().unwrap_or_default();
    let description = operation["description"].as_str().unwrap_or_default();
    let text = format!("{summary}.\n\n{description}");
    let lines = text.trim_end().lines();
    lines
        .map(|line| format!(" {line}").trim_end().to_owned())
        .collect()
}

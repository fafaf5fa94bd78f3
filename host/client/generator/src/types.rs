//! The types of bodies.

use crate::schema::{SECRET, enumerations, simplify};
use crate::unknown;
use anyhow::{Context, Result, anyhow};
use heck::ToUpperCamelCase;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use syn::{Field, File, Item, ItemStruct, parse_quote};
use typify::{TypeSpace, TypeSpaceImpl, TypeSpaceSettings};

const COMPONENT: &str = "#/components/schemas/";

/// Generates a type for each schema that a request or a successful response uses.
pub fn generate(document: &Value) -> Result<TokenStream> {
    let schemas = document["components"]["schemas"]
        .as_object()
        .context("components.schemas is missing")?;
    let known = enumerations(schemas);
    let mut definitions = vec![(
        SECRET.to_owned(),
        parse(&serde_json::json!({ "type": "string" }))?,
    )];
    let (mut used, mut sent) = (BTreeSet::new(), BTreeSet::new());
    collect_bodies(document, schemas, &mut used, &mut sent)?;
    for name in used {
        let schema = simplify(&schemas[&name], &known, true);
        definitions.push((name, parse(&schema)?));
    }
    let mut settings = TypeSpaceSettings::default();
    settings.with_map_type("::std::collections::BTreeMap");
    settings.with_replacement(
        SECRET,
        "crate::Secret",
        [TypeSpaceImpl::FromStr].into_iter(),
    );
    let mut space = TypeSpace::new(&settings);
    space
        .add_ref_types(definitions)
        .map_err(|error| anyhow!("the schemas have no Rust types: {error}"))?;
    let mut file: File = syn::parse2(space.to_stream())?;
    file.items.retain(|item| !is_conversion(item));
    unknown::accept(&mut file);
    let mut constructors = Vec::new();
    for item in &mut file.items {
        if let Item::Struct(item) = item
            && sent
                .iter()
                .any(|name| item.ident == name.to_upper_camel_case())
        {
            item.attrs.push(parse_quote!(#[non_exhaustive]));
            constructors.push(constructor(item));
        }
    }
    file.items.extend(constructors);
    Ok(file.into_token_stream())
}

/// Whether an item is `From` or `TryFrom`. The fields are public, and enumerations have `FromStr`.
fn is_conversion(item: &Item) -> bool {
    let Item::Impl(item) = item else {
        return false;
    };
    let of = item
        .trait_
        .as_ref()
        .and_then(|(_, path, _)| path.segments.last());
    of.is_some_and(|name| name.ident == "From" || name.ident == "TryFrom")
}

/// `new` with the required fields of a request. New optional fields then break no caller.
fn constructor(item: &ItemStruct) -> Item {
    let (name, mut arguments, mut values) = (&item.ident, Vec::new(), Vec::new());
    for field in &item.fields {
        let Field { ident, ty, .. } = field;
        let is_optional = field.attrs.iter().any(|attribute| {
            let text = attribute.to_token_stream().to_string();
            text.contains("skip_serializing_if") || text.contains("default")
        });
        if is_optional {
            values.push(quote!(#ident: ::std::default::Default::default()));
        } else {
            arguments.push(quote!(#ident: #ty));
            values.push(quote!(#ident));
        }
    }
    parse_quote! {
        impl #name {
            /// Creates a request with the required fields.
            #[allow(clippy::new_without_default)]
            pub fn new(#(#arguments),*) -> Self {
                Self { #(#values),* }
            }
        }
    }
}

fn parse(schema: &Value) -> Result<schemars::schema::Schema> {
    serde_json::from_value(schema.clone()).with_context(|| format!("not a schema: {schema}"))
}

/// Collects the names of the components that bodies consist of, and of those that are sent.
fn collect_bodies(
    document: &Value,
    schemas: &Map<String, Value>,
    used: &mut BTreeSet<String>,
    sent: &mut BTreeSet<String>,
) -> Result<()> {
    let paths = document["paths"].as_object().context("paths are missing")?;
    let items = paths.values().filter_map(Value::as_object);
    for operation in items.flat_map(Map::values) {
        let body =
            &resolve(document, &operation["requestBody"])["content"]["application/json"]["schema"];
        collect(body, schemas, used)?;
        sent.extend(
            body["$ref"]
                .as_str()
                .and_then(|r| r.strip_prefix(COMPONENT))
                .map(str::to_owned),
        );
        for (status, response) in operation["responses"].as_object().into_iter().flatten() {
            if status.starts_with('2') {
                let content = &resolve(document, response)["content"];
                collect(&content["application/json"]["schema"], schemas, used)?;
            }
        }
    }
    Ok(())
}

/// Follows a reference to a component.
pub fn resolve<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let pointer = value["$ref"]
        .as_str()
        .and_then(|reference| reference.strip_prefix('#'));
    pointer.map_or(value, |pointer| {
        document.pointer(pointer).unwrap_or(&Value::Null)
    })
}

/// Collects references, and those of the schemas that they name.
fn collect(
    value: &Value,
    schemas: &Map<String, Value>,
    found: &mut BTreeSet<String>,
) -> Result<()> {
    if let Some(name) = value["$ref"]
        .as_str()
        .and_then(|r| r.strip_prefix(COMPONENT))
    {
        let schema = schemas
            .get(name)
            .with_context(|| format!("{COMPONENT}{name} does not exist"))?;
        if found.insert(name.to_owned()) {
            collect(schema, schemas, found)?;
        }
    }
    match value {
        Value::Object(map) => map
            .values()
            .try_for_each(|inner| collect(inner, schemas, found)),
        Value::Array(items) => items
            .iter()
            .try_for_each(|inner| collect(inner, schemas, found)),
        _ => Ok(()),
    }
}

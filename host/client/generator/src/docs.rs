//! Doc comments of generated items.

use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Expr, ExprLit, Field, File, Lit, Meta, Variant, Visibility, parse_quote};

/// Documents fields and variants without a description, and removes the schemas from the comments.
pub fn complete(file: &mut File) {
    Docs.visit_file_mut(file);
}

struct Docs;

impl VisitMut for Docs {
    fn visit_attribute_mut(&mut self, attribute: &mut Attribute) {
        if let Some(text) = doc(attribute) {
            let before = text.split("<details>").next().unwrap_or_default();
            let text = format!(" {}", before.trim());
            *attribute = parse_quote!(#[doc = #text]);
        }
    }

    fn visit_field_mut(&mut self, field: &mut Field) {
        visit_mut::visit_field_mut(self, field);
        let is_public = matches!(field.vis, Visibility::Public(_));
        if let (true, Some(name)) = (is_public, &field.ident) {
            let text = format!(" `{}`.", name.to_token_stream());
            document(&mut field.attrs, &text);
        }
    }

    fn visit_variant_mut(&mut self, variant: &mut Variant) {
        visit_mut::visit_variant_mut(self, variant);
        let name = renamed(&variant.attrs).unwrap_or_else(|| variant.ident.to_string());
        document(&mut variant.attrs, &format!(" `{name}`."));
    }
}

fn document(attributes: &mut Vec<Attribute>, text: &str) {
    if attributes.iter().all(|attribute| doc(attribute).is_none()) {
        attributes.insert(0, parse_quote!(#[doc = #text]));
    }
}

fn doc(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The name of a variant on the wire.
fn renamed(attributes: &[Attribute]) -> Option<String> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("serde"))
        .find_map(|attribute| {
            let mut name = None;
            let _ = attribute.parse_nested_meta(|meta| {
                let value = meta.value()?.parse::<syn::LitStr>()?;
                if meta.path.is_ident("rename") {
                    name = Some(value.value());
                }
                Ok(())
            });
            name
        })
}

//! Values of enumerations that only a later version of the server knows.

use quote::ToTokens;
use std::collections::BTreeSet;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, ExprMatch, Fields, File, Ident, Item, ItemEnum, Path, Token, parse_quote};

/// Adds `Unknown` to the enumerations of texts. An answer with such a value then still has its other fields.
pub fn accept(file: &mut File) {
    let mut texts = BTreeSet::new();
    for item in &mut file.items {
        if let Item::Enum(item) = item
            && item
                .variants
                .iter()
                .all(|variant| matches!(variant.fields, Fields::Unit))
        {
            item.attrs.iter_mut().for_each(without_copy);
            item.attrs.push(parse_quote!(#[non_exhaustive]));
            add(item);
            texts.insert(item.ident.clone());
        }
    }
    for item in &mut file.items {
        if let Item::Impl(item) = item
            && let Some((_, of, _)) = &item.trait_
            && is_display(of)
            && let syn::Type::Path(name) = &*item.self_ty
            && name
                .path
                .get_ident()
                .is_some_and(|name: &Ident| texts.contains(name))
        {
            Shown.visit_item_impl_mut(item);
        }
    }
}

fn add(item: &mut ItemEnum) {
    item.variants.push(parse_quote! {
        /// A value that this version does not know.
        #[serde(untagged)]
        Unknown(::std::string::String)
    });
}

fn is_display(path: &Path) -> bool {
    path.segments
        .last()
        .is_some_and(|name| name.ident == "Display")
}

/// A text cannot be `Copy`.
fn without_copy(attribute: &mut Attribute) {
    if !attribute.path().is_ident("derive") {
        return;
    }
    let mut kept = Vec::new();
    let _ = attribute.parse_nested_meta(|meta| {
        if !meta.path.is_ident("Copy") {
            kept.push(meta.path);
        }
        Ok(())
    });
    let kept: syn::punctuated::Punctuated<Path, Token![,]> = kept.into_iter().collect();
    let kept = kept.to_token_stream();
    *attribute = parse_quote!(#[derive(#kept)]);
}

/// Shows an unknown value as it was received.
struct Shown;

impl VisitMut for Shown {
    fn visit_expr_match_mut(&mut self, shown: &mut ExprMatch) {
        visit_mut::visit_expr_match_mut(self, shown);
        shown
            .arms
            .push(parse_quote!(Self::Unknown(ref text) => f.write_str(text),));
    }
}

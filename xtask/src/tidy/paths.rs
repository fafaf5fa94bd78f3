//! The paths that a Rust file uses, from `use` lines and from expressions alike.

use super::File;
use anyhow::Result;
use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Ident, ItemUse, UseTree};

/// One path, such as `crate::domain::ids`, without generics.
#[derive(Debug)]
pub(super) struct Use {
    pub segments: Vec<String>,
    pub line: usize,
}

impl Use {
    pub fn segment(&self, index: usize) -> &str {
        self.segments.get(index).map_or("", String::as_str)
    }
}

/// All of a file's.
pub(super) fn of(file: &File) -> Result<Vec<Use>> {
    let tree = syn::parse_file(&file.text)?;
    let mut collector = Collector(Vec::new());
    collector.visit_file(&tree);
    Ok(collector.0)
}

struct Collector(Vec<Use>);

impl Collector {
    fn add(&mut self, segments: Vec<String>, span: Span) {
        self.0.push(Use {
            segments,
            line: span.start().line,
        });
    }

    fn tree(&mut self, tree: &UseTree, mut before: Vec<String>) {
        let name = |ident: &Ident| ident.to_string();
        match tree {
            UseTree::Path(path) => {
                before.push(name(&path.ident));
                self.tree(&path.tree, before);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, before.clone());
                }
            }
            UseTree::Name(last) => {
                before.push(name(&last.ident));
                self.add(before, last.ident.span());
            }
            UseTree::Rename(last) => {
                before.push(name(&last.ident));
                self.add(before, last.ident.span());
            }
            UseTree::Glob(star) => {
                before.push("*".to_owned());
                self.add(before, star.star_token.span);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.tree(&item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        if let Some(first) = path.segments.first() {
            self.add(segments.collect(), first.ident.span());
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::{File, of};

    #[test]
    fn nested_uses_and_inline_paths_are_found() {
        let text = "use crate::{a::b, c::*};\nfn f() { crate::d::e::<crate::g::H>() }\n";
        let file = File {
            path: "x.rs".to_owned(),
            text: text.to_owned(),
        };
        let uses = of(&file).unwrap();
        let found: Vec<_> = uses
            .iter()
            .map(|u| (u.line, u.segments.join("::")))
            .collect();
        for expected in [
            (1, "crate::a::b"),
            (1, "crate::c::*"),
            (2, "crate::d::e"),
            (2, "crate::g::H"),
        ] {
            assert!(
                found.contains(&(expected.0, expected.1.to_owned())),
                "{found:?}"
            );
        }
    }
}

//! The page on reading the core names files that exist, within the bounds of its list and its walks.

use std::collections::BTreeSet;
use std::fs;
use wharf_testkit::workspace::root;

/// The most files of the list, and of each walk.
const CORE: usize = 60;
const WALKS: [(&str, usize); 3] = [("create", 30), ("attempt", 14), ("driver call", 24)];

/// The text between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_core_is_a_list_of_files_with_three_walks() {
    let page = fs::read_to_string(root().join("docs/reading.md")).unwrap();
    let (list, walks) = page.split_once("\n## Walks\n").unwrap();
    let row = |line: &str| {
        let (number, rest) = line.split_once(". [")?;
        let (path, rest) = rest.split_once("](../")?;
        let number: usize = number.parse().ok()?;
        assert!(rest.starts_with(&format!("{path}): ")), "{line}");
        Some((number, path.to_owned()))
    };
    let rows: Vec<_> = list.lines().filter_map(row).collect();
    let files: BTreeSet<_> = rows.iter().map(|(_, path)| path.as_str()).collect();
    assert!(rows.iter().map(|(number, _)| *number).eq(1..=rows.len()));
    assert_eq!(files.len(), rows.len(), "a file is listed twice");
    assert!((40..=CORE).contains(&rows.len()), "{} files", rows.len());
    assert!(page.contains(&format!("The core is {} files,", rows.len())));
    let missing: Vec<_> = files.iter().filter(|f| !root().join(f).is_file()).collect();
    assert!(missing.is_empty(), "no such files: {missing:?}");
    for (name, most) in WALKS {
        let begin = format!("\n### The {name}: ");
        let (_, walk) = walks.split_once(&begin).unwrap();
        let walk = walk.split("\n#").next().unwrap();
        let steps: BTreeSet<_> = quoted(walk).into_iter().collect();
        assert!(steps.len() > 10, "{name}: {steps:?}");
        assert!(steps.len() <= most, "{name}: {} files", steps.len());
        assert!(
            walk.starts_with(&format!("{} files\n", steps.len())),
            "{name}"
        );
        for step in steps {
            let is_listed = ["host", "plugins"].map(|dir| format!("{dir}/{step}"));
            let is_listed = is_listed.iter().any(|path| files.contains(path.as_str()));
            assert!(is_listed, "{name}: {step} is not in the list");
        }
    }
}

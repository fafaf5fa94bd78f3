//! The workspace keeps its own rules.

#[test]
fn workspace_is_tidy() {
    xtask::tidy::run().unwrap();
}

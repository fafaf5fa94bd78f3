//! The committed files of the console are those that its source makes.

use crate::npm;
use std::process::Command;

#[test]
fn the_committed_console_is_that_of_its_source() {
    let tools = npm::install().and_then(|console| Ok((console, npm::node()?)));
    let (console, node) = match tools {
        Ok(tools) => tools,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{error:#}");
            eprintln!("SKIPPED: {error:#}");
            return;
        }
    };
    let mut check = Command::new(node);
    let output = check
        .current_dir(console)
        .arg("check.mjs")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", text(&output.stdout));
    assert!(output.status.success(), "{}", text(&output.stderr));
}

//! `cargo xtask dist`: an archive and a Debian package of the server that was built.
//!
//! - [`tree`]: the files, below a prefix such as `/usr`.
//! - [`package`]: the archive and the package around them.

mod package;
mod tree;

use anyhow::{Result, bail};
use std::env;
use wharf_testkit::workspace;

const HELP: &str = "\
Make target/dist/wharf-VERSION-ARCHITECTURE.tar.gz and a .deb of the server

Usage: cargo xtask dist
";

fn main() -> Result<()> {
    if let Some(argument) = env::args().nth(1) {
        if matches!(argument.as_str(), "-h" | "--help") {
            print!("{HELP}");
            return Ok(());
        }
        bail!("unexpected argument {argument:?}\n\n{HELP}");
    }
    let out = workspace::target().join("dist");
    for made in [package::archive(&out)?, package::debian(&out)?] {
        println!("{}", made.display());
    }
    Ok(())
}

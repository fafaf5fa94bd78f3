//! The scripts that give an AI provider's key to the assistants of an instance, on files of the source of a
//! clone.

use crate::source;
use wharf_tests::{Python, succeed};

#[test]
fn no_key_of_an_ai_provider_is_cloned() {
    let common = wharf_testkit::workspace::root().join("plugins/flavors-standard/images/common");
    let python = Python::ensure(&common.join("tomlkit.txt")).unwrap();
    let said = succeed(
        python
            .program("python")
            .args(["-m", "unittest", "discover", "--start-directory"])
            .arg(source("ai_key"))
            .env("SCRIPTS", common.join("files/usr/local/lib/wharf")),
    );
    said.unwrap();
}

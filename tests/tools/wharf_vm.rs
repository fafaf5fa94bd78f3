//! `wharf-vm`, the program that runs virtual machines, against a scripted QEMU. The tests on real
//! engines use the real QEMU.

use crate::source;
use std::process::Command;
use wharf_tests::succeed;

#[test]
fn the_parts_of_wharf_vm() {
    let program = wharf_testkit::workspace::root()
        .join("plugins/flavors-standard/images/vm-base/files/usr/local/lib/wharf-vm");
    let said = succeed(
        Command::new("python3")
            .args(["-m", "unittest", "discover", "--start-directory"])
            .arg(source("wharf_vm"))
            .env("PYTHONPATH", program)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    );
    said.unwrap();
}

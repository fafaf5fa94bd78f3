//! The picture of the console in the README. `WHARF_PICTURE=1` takes it again.

use crate::desk::Desk;
use serde_json::json;
use std::path::Path;
use wharf_tests::{Ports, simulated_node};

/// The largest size of the picture, in bytes.
const MAX_BYTES: u64 = 150_000;
/// A script that returns the parts of the page: titles, tabs, links and buttons.
const PARTS: &str = "
    const parts = document.querySelectorAll('h1, h2, h3, nav a, main a, main button, dt');
    return [...parts].map((part) => part.firstChild.textContent.replaceAll('\\u00a0', ' ').trim()).join('\\n') + '\\n'";

#[test]
fn the_picture_of_the_readme_shows_the_console_of_today() {
    let settings = format!(
        "{}{}[pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n",
        Ports::take().settings(),
        simulated_node("one", "")
    );
    let Some(desk) = Desk::start_with(&settings).unwrap() else {
        return;
    };
    for (name, flavor) in [("training-run", "base"), ("notebook", "marimo")] {
        let body = json!({
            "resource_type": "container", "name": name, "flavor": flavor,
            "n_vcpus": 2, "mem_gib": 4, "disk_size_gib": 40,
        });
        desk.api.create(&body).unwrap().expect(201).unwrap();
        desk.api.wait_for(name, "running").unwrap();
    }
    desk.browser.resize(1400, 730).unwrap();
    desk.open("/instances/notebook", "h1").unwrap();
    desk.wait_for_state("Running").unwrap();
    desk.browser.wait_for_text("The instance is ready").unwrap();
    let drawn = "return [...document.querySelectorAll('.plot')].every((chart) =>
        chart.querySelector('canvas') && !chart.ariaLabel.includes('no samples'))";
    desk.browser
        .wait_for("the charts are drawn", drawn)
        .unwrap();
    desk.settle().unwrap();
    let page = desk.browser.run(PARTS).unwrap();
    let page = page.as_str().unwrap();
    let shot = desk.browser.screenshot("readme").unwrap();

    let picture = wharf_testkit::workspace::root().join("docs/console.png");
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("console/readme_parts.txt");
    if std::env::var_os("WHARF_PICTURE").is_some() {
        std::fs::copy(shot, &picture).unwrap();
        std::fs::write(&parts, page).unwrap();
    }
    let size = std::fs::metadata(&picture).unwrap().len();
    assert!(size < MAX_BYTES, "{size} bytes");
    let taken = std::fs::read_to_string(&parts).unwrap();
    assert_eq!(
        page, taken,
        "the page has other parts than its picture; WHARF_PICTURE=1 takes it again"
    );
    let readme = wharf_testkit::workspace::root().join("README.md");
    assert!(
        std::fs::read_to_string(readme)
            .unwrap()
            .contains("(docs/console.png)")
    );
}

//! The explorer of the API, on a node that has room for the smallest instance alone.

use crate::desk::Desk;
use serde_json::json;
use wharf_tests::Ports;

const SMALLEST: &str = r#"
[[node]]
name = "one"
driver = "simulated"
endpoint = "simulated://"
capacity = { n_vcpus = 1, mem_gib = 1, disk_size_gib = 10 }
lan_cidr = "10.80.0.0/24"
"#;

/// Opens an operation and waits for its responses.
const OPEN: &str = "
    const block = document.querySelector('#operations-Instances-' + OPERATION);
    if (!block) return false;
    if (!block.classList.contains('is-open')) block.querySelector('.opblock-summary-control').click();
    return [...block.querySelectorAll('summary')]
        .some((summary) => summary.textContent.startsWith('Errors of every request'));
";
/// Counts boxes of errors, columns of links, and responses in full that are those of every request.
const UGLY: &str = "
    const shown = (selector) => [...document.querySelectorAll('#explorer ' + selector)]
        .filter((element) => element.getClientRects().length > 0);
    const shared = shown('.responses-table > tbody > tr.response')
        .filter((row) => ['401', '413', '429', '500'].includes(row.dataset.code));
    return [shown('.errors-wrapper').length, shown('.response-col_links').length, shared.length];
";
const STATUS: &str = "
    const cell = document.querySelector('#operations-Instances-createInstance .live-responses-table \
        tbody .response-col_status');
    return cell && cell.textContent.trim();
";

#[test]
fn the_explorer_has_no_errors_and_its_first_example_succeeds() {
    let settings = format!("{}{SMALLEST}", Ports::take().settings());
    let Some(desk) = Desk::start_with(&settings).unwrap() else {
        return;
    };
    desk.open("/api/docs/", ".opblock").unwrap();
    for operation in ["listInstances", "createInstance", "updateInstance"] {
        let open = OPEN.replace("OPERATION", &format!("'{operation}'"));
        desk.browser.wait_for(operation, &open).unwrap();
    }
    assert_eq!(desk.browser.run(UGLY).unwrap(), json!([0, 0, 0]));
    // The session of the console counts here too.
    let execute = "document.querySelector('#operations-Instances-createInstance .execute').click()";
    desk.browser.run(execute).unwrap();
    let status = desk.browser.wait_for("the response", STATUS).unwrap();
    let scroll = "document.querySelector('#operations-Instances-createInstance').scrollIntoView()";
    desk.browser.run(scroll).unwrap();
    desk.picture("explorer").unwrap();
    assert_eq!(status, "201");
}

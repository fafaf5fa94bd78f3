//! The page on which instances are created.

use crate::desk::Desk;
use serde_json::json;
use wharf_tests::{Ports, simulated_node};

/// Whether a flavor's choice is there and cannot be made, and the words on it.
const MARIMO: &str = "const tile = [...document.querySelectorAll('.tile')]
    .find((tile) => tile.querySelector('b').textContent === 'marimo');
    return tile && [tile.querySelector('input').disabled, tile.innerText];";

#[test]
fn flavors_show_the_content_of_their_images_and_cannot_be_chosen_without_one() {
    let images = "missing_images = [\"localhost/wharf/marimo:1\"], \
                  image_contents = { \"localhost/wharf/rserver:1\" = \"RStudio Server 2026.01\" }";
    let node = simulated_node("one", images);
    let settings = format!("{}{node}", Ports::take().settings());
    let Some(desk) = Desk::start_with(&settings).unwrap() else {
        return;
    };
    desk.open("/instances/new", ".tile").unwrap();
    desk.browser
        .wait_for_text("No node has its image.")
        .unwrap();
    desk.browser
        .wait_for_text("RStudio Server 2026.01")
        .unwrap();
    let tile = desk.browser.run(MARIMO).unwrap();
    assert_eq!(tile[0], json!(true), "{tile}");
    assert!(tile[1].as_str().unwrap().contains("No node has its image."));
    let chosen = "return document.querySelector('.tile :checked:not(:disabled)') !== null";
    assert_eq!(desk.browser.run(chosen).unwrap(), json!(true));
}

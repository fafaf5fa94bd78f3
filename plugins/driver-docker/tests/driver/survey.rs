//! The images of a node.

use crate::calls::Calls;
use crate::fake::Fake;
use crate::fake::given::node;

#[test]
fn images_that_are_missing_or_have_no_ssh_server_are_named() {
    let fake = Fake::new();
    let earlier = "localhost/wharf/earlier:1".to_owned();
    fake.world.borrow_mut().images.insert(earlier.clone());
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    let gone = "localhost/wharf/gone:1".to_owned();
    let found = calls.look(&[
        "localhost/wharf/base:1".to_owned(),
        earlier.clone(),
        gone.clone(),
        // The engine pulls it at the first use.
        "registry.example/earlier:1".to_owned(),
    ]);
    let found = found.unwrap();
    assert_eq!(found.missing_images, [gone]);
    assert_eq!(found.images_without_ssh, [earlier]);
}

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

#[test]
fn images_of_registries_have_contents_too() {
    let fake = Fake::new();
    let (base, tools) = ("localhost/wharf/base:1", "registry.example/tools:1");
    for image in [tools, "registry.example/wharf/prefixed:1"] {
        fake.world.borrow_mut().images.insert(image.to_owned());
    }
    let look = |settings: &str, images: &[&str]| {
        let node = node(settings);
        let images: Vec<_> = images.iter().map(|image| (*image).to_owned()).collect();
        let found = Calls::new(&node, &fake).look(&images).unwrap();
        assert_eq!(found.missing_images, [""; 0]);
        let contents = found.image_contents.into_iter();
        contents
            .map(|found| (found.image, found.content))
            .collect::<Vec<_>>()
    };
    let told = |image: &str, content: &str| (image.to_owned(), content.to_owned());
    // The engine does not have the third image, and refuses the name of the last one.
    let gone = [
        "registry.example/gone:1",
        "registry.example/reports@sha256:ab",
    ];
    assert_eq!(
        look("{}", &[base, tools, gone[0], gone[1]]),
        [
            told(base, "Tools of localhost/wharf/base:1"),
            told(tools, "Tools of registry.example/tools:1"),
        ]
    );
    // The host knows the reference of the blueprint alone.
    let prefix = r#"{"image_prefix":"registry.example/wharf/"}"#;
    let image = "localhost/wharf/prefixed:1";
    let content = "Tools of registry.example/wharf/prefixed:1";
    assert_eq!(look(prefix, &[image]), [told(image, content)]);
}

//! Databases of earlier versions, which were killed, are served with their secrets.

use flate2::read::GzDecoder;
use std::fs;
use std::path::Path;
use wharf_tests::{Ports, Server, simulated_node, write_private};

const PASSWORDS: [&str; 2] = ["UMEvpqgs4SEpSkFTKTNE3f6C", "BPN5drwPc6qx5CYCffbh2ZKn"];

#[test]
fn a_database_of_every_format_is_served_and_its_secrets_are_shown() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/db/src/tests/fixtures");
    let key = fs::read(fixtures.join("secret.key")).unwrap();
    for format in 2..=3 {
        let settings = format!("{}{}", Ports::take().settings(), simulated_node("one", ""));
        let mut server = Server::start(&settings).unwrap();
        server.terminate().unwrap();
        let file = fs::File::open(fixtures.join(format!("format-{format}.redb.gz"))).unwrap();
        let mut database = Vec::new();
        std::io::copy(&mut GzDecoder::new(file), &mut database).unwrap();
        write_private(&server.data_dir().join("wharf.redb"), &database).unwrap();
        // The key of another installation is not taken for one of a database that names none.
        let error = server.run().unwrap_err().to_string();
        assert!(
            error.contains("decrypts no secret of the database"),
            "{error}"
        );
        write_private(&server.data_dir().join("secret.key"), &key).unwrap();
        server.run().unwrap();
        for rotated in [false, true] {
            if rotated {
                server.cli(&["secrets", "rotate"]).unwrap();
            }
            let list = server.user("ann@example.com").unwrap().list().unwrap();
            let shown = list.iter().map(|i| &i["original_service_password"]);
            assert!(shown.eq(&PASSWORDS), "format {format}, rotated: {rotated}");
        }
        server.finish().unwrap();
    }
}

//! Databases of earlier versions, which were killed, are served with their secrets.

use flate2::read::GzDecoder;
use std::fs;
use std::path::Path;
use wharf_tests::{Ports, simulated_node, write_private};

/// Each format, and the passwords in its file.
const FORMATS: [(u32, [&str; 2]); 3] = [
    (2, ["UMEvpqgs4SEpSkFTKTNE3f6C", "BPN5drwPc6qx5CYCffbh2ZKn"]),
    (3, ["UMEvpqgs4SEpSkFTKTNE3f6C", "BPN5drwPc6qx5CYCffbh2ZKn"]),
    (4, ["hgHf2TRnL5FZaSimcmcN6A7m", "JSScn8CK8UU6N7C6vxvukJTp"]),
];

#[test]
fn a_database_of_every_format_is_served_and_its_secrets_are_shown() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/db/src/tests/fixtures");
    let key = fs::read(fixtures.join("secret.key")).unwrap();
    for (format, passwords) in FORMATS {
        let settings = format!("{}{}", Ports::take().settings(), simulated_node("one", ""));
        let mut server = crate::serve(&settings);
        server.terminate().unwrap();
        let file = fs::File::open(fixtures.join(format!("format-{format}.redb.gz"))).unwrap();
        let mut database = Vec::new();
        std::io::copy(&mut GzDecoder::new(file), &mut database).unwrap();
        write_private(&server.data_dir().join("wharf.redb"), &database).unwrap();
        // The key of another installation is refused, also by a database that names no key.
        let error = server.run().unwrap_err().to_string();
        let refused = match format {
            4 => "needs the one with the fingerprint",
            _ => "decrypts no secret of the database",
        };
        assert!(error.contains(refused), "{error}");
        write_private(&server.data_dir().join("secret.key"), &key).unwrap();
        server.run().unwrap();
        for rotated in [false, true] {
            if rotated {
                server.cli(&["secrets", "rotate"]).unwrap();
            }
            let list = server.user("ann@example.com").unwrap().list().unwrap();
            let shown = list.iter().map(|i| &i["original_service_password"]);
            assert!(shown.eq(&passwords), "format {format}, rotated: {rotated}");
        }
    }
}

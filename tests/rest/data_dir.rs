//! Files of a server's first start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use wharf_tests::{Ports, Server, simulated_node};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_first_start_creates_a_private_data_directory() {
    let node = simulated_node("one", "");
    let settings = format!("{}{node}", Ports::take().settings());
    let server = Server::start(&settings).unwrap();
    let data = server.data_dir();
    let plugins = data.join("plugins-cache");
    assert_eq!((mode(&data), mode(&plugins)), (0o700, 0o700));
    let mut files = 0;
    for dir in [&data, &plugins] {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    // The database, the key of the secrets, the operator's socket.
    assert!(files >= 3, "{files} files");
    server.finish().unwrap();
}

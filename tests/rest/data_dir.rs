//! Files of a server's first start.

use crate::compiled::mode;
use crate::start;
use std::fs;

#[test]
fn a_first_start_creates_a_private_data_directory() {
    let (server, _) = start();
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
}

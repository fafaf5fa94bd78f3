//! Files of public keys in the forms in which people have them.

use super::signed_in;
use crate::{Expected, has};

const TYPE: &str = "ssh-ed25519";
const DATA: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";

#[test]
fn tabs_are_taken_and_other_forms_are_refused_with_the_way_to_the_right_one() {
    let (_server, api, shell) = signed_in("");
    let add = |name: &str, bytes: &[u8]| {
        std::fs::write(shell.home().join("key"), bytes).unwrap();
        shell.run(&["ssh-keys", "add", name, "key"]).unwrap()
    };
    let tabs = format!("{TYPE}\t{DATA}\tme at\thome\r\n");
    add("tabs", tabs.as_bytes()).succeeded().unwrap();
    let saved = api.get("/api/ssh-key/").is(200)[0]["public_key"].clone();
    assert_eq!(saved, format!("{TYPE} {DATA} me at home"));
    let line = format!("{TYPE} {DATA} me\r\n");
    let wide: Vec<u16> = std::iter::once(0xfeff).chain(line.encode_utf16()).collect();
    let [mut little, mut big] = [Vec::new(), Vec::new()];
    for unit in wide {
        little.extend(unit.to_le_bytes());
        big.extend(unit.to_be_bytes());
    }
    let putty = format!(
        "---- BEGIN SSH2 PUBLIC KEY ----\r\nComment: \"me\"\r\n{DATA}\r\n---- END SSH2 PUBLIC KEY ----\r\n"
    );
    for (bytes, remedy) in [
        (format!("\u{feff}{line}").into_bytes(), "byte order mark"),
        (little, "Out-File -Encoding ascii"),
        (big, "Out-File -Encoding ascii"),
        (putty.into_bytes(), "ssh-keygen -i -f"),
        (
            b"PuTTY-User-Key-File-3: ssh-ed25519\r\n".to_vec(),
            "PuTTYgen",
        ),
        (b"ssh-ed25519 \xff\n".to_vec(), "UTF-8"),
    ] {
        let refused = add("other", &bytes);
        assert!([Some(1), Some(2)].contains(&refused.code), "{refused:?}");
        has(&refused.stderr, remedy);
    }
}

#[test]
fn no_color_wins() {
    let (_server, _, shell) = signed_in("");
    let forced = [("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")];
    let colours = |variables: &[(&str, &str)]| {
        let listed = shell.run_with(&["ls"], variables, "").unwrap();
        listed.succeeded().unwrap().stdout.contains('\x1b')
    };
    assert!(colours(&forced[..1]));
    assert!(!colours(&forced));
}

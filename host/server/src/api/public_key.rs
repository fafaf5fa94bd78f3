//! `public_key`: one OpenSSH public key line.

use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, HashAlg, PublicKey};

/// The smallest RSA key that OpenSSH's server lets in.
const RSA_BITS: usize = 1024;

/// The characters that may surround the line: the schema's pattern knows the same four. Unicode's white space
/// is not one set (U+0085 is in Rust's and not in ECMAScript's), so it is no part of the contract.
const AROUND: [char; 4] = [' ', '\t', '\r', '\n'];

/// Reads the line and gives it in its plain form: algorithm, key, comment.
pub fn parse(text: &str) -> Result<String, String> {
    let refuse = |why: &str| Err(why.to_owned());
    if text.contains("PRIVATE KEY") {
        return refuse("is a private key; give the public one, from the file that ends in .pub");
    }
    if text.contains('\0') {
        return refuse("is in UTF-16; save the file as ASCII");
    }
    if text.starts_with('\u{feff}') {
        return refuse("begins with a byte order mark; save the file without it, as ASCII");
    }
    if text.contains("BEGIN SSH2 PUBLIC KEY") {
        return refuse(
            "is in the form of RFC 4716, as PuTTY saves it; give the line that PuTTYgen shows for \
             authorized_keys, or the output of `ssh-keygen -i -f FILE`",
        );
    }
    if text
        .trim_start_matches(AROUND)
        .starts_with("PuTTY-User-Key-File")
    {
        return refuse(
            "is a private key of PuTTY; open it in PuTTYgen, and give the line for authorized_keys",
        );
    }
    let line = text.trim_matches(AROUND);
    if line.contains(['\n', '\r']) {
        return refuse("must be a single line");
    }
    // OpenSSH takes tabs between the words.
    if line.chars().any(|c| c.is_control() && c != '\t') {
        return refuse("must not contain control characters");
    }
    let line = line.replace('\t', " ");
    let mut words = line.splitn(2, ' ');
    let algorithm = words.next().unwrap_or_default();
    let rest = words.next().unwrap_or_default().trim_start_matches(' ');
    let mut rest = rest.splitn(2, ' ');
    let data = rest.next().unwrap_or_default();
    let comment = rest.next().unwrap_or_default().trim_matches(AROUND);
    let plain = format!("{algorithm} {data} {comment}");
    let plain = plain.trim_end_matches(AROUND);
    // The parser takes Unicode's white space off the data by itself.
    let key = data.is_ascii().then(|| PublicKey::from_openssh(plain));
    let Some(Ok(key)) = key else {
        return refuse(
            "must be one OpenSSH public key line without options, such as \
             \"ssh-ed25519 AAAA… me@laptop\"",
        );
    };
    let bits = match key.key_data() {
        KeyData::Rsa(rsa) => rsa.n().as_positive_bytes().map_or(0, |n| n.len() * 8),
        _ => RSA_BITS,
    };
    match key.algorithm() {
        Algorithm::Rsa { .. } if bits < RSA_BITS => {
            Err(format!("an RSA key must have at least {RSA_BITS} bits"))
        }
        Algorithm::Ed25519
        | Algorithm::Rsa { .. }
        | Algorithm::Ecdsa { .. }
        | Algorithm::SkEd25519
        | Algorithm::SkEcdsaSha2NistP256 => Ok(plain.to_owned()),
        _ => refuse("must be an Ed25519, RSA or ECDSA key"),
    }
}

/// The fingerprint of a valid line, as `ssh-keygen -l` shows it.
pub fn fingerprint(line: &str) -> Option<String> {
    let key = PublicKey::from_openssh(line).ok()?;
    Some(key.fingerprint(HashAlg::Sha256).to_string())
}

#[cfg(test)]
mod tests {
    use super::{fingerprint, parse};

    const ED25519: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";

    #[test]
    fn one_line_in_its_plain_form() {
        assert_eq!(parse(ED25519).as_deref(), Ok(ED25519));
        let commented = format!("{ED25519} me@laptop with spaces");
        assert_eq!(parse(&commented).as_deref(), Ok(commented.as_str()));
        let loose = format!("  {} me \n", ED25519.replace(' ', "   "));
        assert_eq!(parse(&loose), Ok(format!("{ED25519} me")));
        let tabs = format!("{}\tme\tat home\t", ED25519.replace(' ', "\t"));
        assert_eq!(parse(&tabs), Ok(format!("{ED25519} me at home")));
    }

    #[test]
    fn other_forms_are_refused_with_the_way_to_the_right_one() {
        let utf_16: String = ED25519.chars().flat_map(|c| [c, '\0']).collect();
        for (text, remedy) in [
            (format!("\u{feff}{ED25519}"), "byte order mark"),
            (utf_16, "UTF-16"),
            (
                "---- BEGIN SSH2 PUBLIC KEY ----\nComment: \"a\"\nAAAA\n".to_owned(),
                "ssh-keygen -i",
            ),
            (
                "PuTTY-User-Key-File-3: ssh-ed25519\n".to_owned(),
                "PuTTYgen",
            ),
        ] {
            let refused = parse(&text).unwrap_err();
            assert!(refused.contains(remedy), "{refused}");
        }
    }

    #[test]
    fn the_fingerprint_is_that_of_ssh_keygen() {
        let known = "SHA256:n3knDmyg+2a+JK29xhPEqIjEG265QrXR41UylNzOSOs";
        for line in [ED25519.to_owned(), format!("{ED25519} me")] {
            assert_eq!(fingerprint(&line).as_deref(), Some(known));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let two = format!("{ED25519}\n{ED25519}");
        let options = format!("no-pty {ED25519}");
        let command = format!("command=\"id\" {ED25519}");
        let other_algorithm = ED25519.replace("ssh-ed25519", "ssh-rsa");
        let cut = &ED25519[..ED25519.len() - 4];
        let control = format!("{ED25519} a\u{7}b");
        let wide = format!("{ED25519}\u{3000}");
        let next_line = format!("{ED25519}\u{85}");
        for bad in [
            "",
            "hello",
            "ssh-ed25519",
            "ssh-ed25519 AAAA",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n",
            &two,
            &options,
            &command,
            &other_algorithm,
            cut,
            &control,
            &wide,
            &next_line,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(
            parse("-----BEGIN RSA PRIVATE KEY-----")
                .unwrap_err()
                .contains("private key")
        );
    }
}

//! The records of an extension in a tar archive. The values of attributes have any bytes, also ends of lines.

/// The records, as keys and values; none if the extension is malformed.
pub fn records(mut bytes: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let digits = bytes.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(bytes.get(..digits)?)
            .ok()?
            .parse()
            .ok()?;
        let (record, rest) = bytes.split_at_checked(length)?;
        let record = record.get(digits.checked_add(1)?..)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        let (key, value) = record.split_at(equals);
        all.push((key, value.get(1..)?));
        bytes = rest;
    }
    Some(all)
}

/// A record, which begins with its length.
pub fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
    let rest = [b" ", key, b"=", value, b"\n"].concat();
    // The length counts its own digits, of which one more can be needed.
    let digits = |length: usize| length.to_string().len();
    let length = rest.len().saturating_add(digits(rest.len()));
    let length = rest.len().saturating_add(digits(length));
    [length.to_string().as_bytes(), &rest].concat()
}

#[cfg(test)]
mod tests {
    use super::{record, records};

    #[test]
    fn records_are_told_by_their_lengths() {
        for length in [0, 1, 84, 85, 86, 87, 982, 983, 984, 985] {
            let value = [b"\n9 path=x\n".repeat(length / 10), vec![b'='; length % 10]].concat();
            let written = [
                record(b"SCHILY.xattr.user.a", &value),
                record(b"path", b"b"),
            ]
            .concat();
            let wanted: [(&[u8], &[u8]); 2] = [(b"SCHILY.xattr.user.a", &value), (b"path", b"b")];
            assert_eq!(records(&written).unwrap(), wanted, "{length}");
        }
        for wrong in [
            "9 path=x",
            "x path=x\n",
            "11 path=x\n",
            "7 path=\n",
            "5 path\n",
            "0 a=\n",
        ] {
            assert_eq!(records(wrong.as_bytes()), None, "{wrong}");
        }
    }
}

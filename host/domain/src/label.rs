//! Labels: the first parts of the host names of pages.

use super::ids::InstanceId;
use super::name::Name;
use uuid::Uuid;

/// Longest label of a host name.
const MAX: usize = 63;
/// Labels that programs look up by themselves, and that users take for the service's own.
const RESERVED: [&str; 6] = ["autodiscover", "isatap", "localhost", "mail", "wpad", "www"];
/// The beginning of labels that browsers show in another script.
const PUNYCODE: &str = "xn--";
/// Digits of the id behind a name whose label is taken.
const DIGITS: [usize; 2] = [6, 12];

/// The labels for the page of an instance, or for one of its ports, in order of preference. They are its name, and
/// its name with digits of its id. A port follows the name.
pub fn labels(name: &Name, id: InstanceId, port: Option<u16>) -> impl Iterator<Item = String> {
    let suffix = port.map_or_else(String::new, |port| format!("-{port}"));
    let plain = format!("{name}{suffix}", name = name.as_str());
    let is_plain = plain.len() <= MAX
        && !plain.starts_with(PUNYCODE)
        && !RESERVED.contains(&&*plain)
        && id_of(&plain).is_none();
    let mut stem = name.as_str();
    while let Some(rest) = stem.strip_prefix(PUNYCODE) {
        stem = rest.trim_start_matches('-');
    }
    let (stem, all) = (stem.to_owned(), of_id(id, None));
    let with_digits = DIGITS.into_iter().filter_map(move |digits| {
        // The end of an id is random.
        let end = all.get(all.len().checked_sub(digits)?..)?;
        let room = (MAX - 1 - digits).checked_sub(suffix.len())?;
        let stem: String = stem.chars().take(room).collect();
        Some(match stem.trim_end_matches('-') {
            "" => format!("page{suffix}-{end}"),
            stem => format!("{stem}{suffix}-{end}"),
        })
    });
    is_plain.then_some(plain).into_iter().chain(with_digits)
}

/// The label of an instance or of its port without another one. No name becomes such a label.
pub fn of_id(id: InstanceId, port: Option<u16>) -> String {
    let id = id.0.simple();
    port.map_or_else(|| id.to_string(), |port| format!("{id}-{port}"))
}

/// The instance and the port of a label of [`of_id`].
pub fn id_of(label: &str) -> Option<(InstanceId, Option<u16>)> {
    let (id, port) = match label.split_once('-') {
        Some((id, port)) => (id, Some(port.parse().ok().filter(|port| *port > 0)?)),
        None => (label, None),
    };
    let is_form = id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let parsed = Uuid::try_parse(id).ok().filter(|_| is_form)?;
    let found = (InstanceId(parsed), port);
    (of_id(found.0, port) == label).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::{id_of, labels, of_id};
    use crate::ids::InstanceId;
    use crate::name::Name;

    #[test]
    fn a_label_is_the_name_unless_it_is_reserved_or_of_another_script() {
        let id = InstanceId::parse("019aa8a5-4c1e-7b52-9d0f-6f0c6a0e9b17").unwrap();
        let all = |name: &str| labels(&Name::parse(name).unwrap(), id, None).collect::<Vec<_>>();
        assert_eq!(all("demo"), ["demo", "demo-0e9b17", "demo-6f0c6a0e9b17"]);
        assert_eq!(all("demo-8000")[0], "demo-8000");
        for (name, first) in [
            ("www", "www-0e9b17"),
            ("wpad", "wpad-0e9b17"),
            ("xn--80ak6aa92e", "80ak6aa92e-0e9b17"),
            ("xn--xn--a", "a-0e9b17"),
            ("xn---xn--a", "a-0e9b17"),
            (
                "019aa8a54c1e7b529d0f6f0c6a0e9b17",
                "019aa8a54c1e7b529d0f6f0c6a0e9b17-0e9b17",
            ),
        ] {
            assert_eq!(all(name)[0], first, "{name}");
        }
        let long = "a".repeat(63);
        let of_long = all(&long);
        assert_eq!(of_long[0], long);
        assert!(of_long.iter().all(|label| label.len() == 63), "{of_long:?}");
        assert_eq!(
            all(&format!("{}-b", "a".repeat(55)))[1],
            format!("{}-0e9b17", "a".repeat(55))
        );
        for port in [None, Some(8000)] {
            assert_eq!(id_of(&of_id(id, port)), Some((id, port)));
        }
        assert_eq!(id_of(&format!("{}-0080", of_id(id, None))), None);
        assert_eq!(id_of("demo"), None);
    }

    #[test]
    fn a_port_follows_the_name_and_fits() {
        let id = InstanceId::parse("019aa8a5-4c1e-7b52-9d0f-6f0c6a0e9b17").unwrap();
        let all = |name: &str| {
            let name = Name::parse(name).unwrap();
            labels(&name, id, Some(8000)).collect::<Vec<_>>()
        };
        assert_eq!(all("demo")[..2], ["demo-8000", "demo-8000-0e9b17"]);
        assert_eq!(all("www")[0], "www-8000");
        assert_eq!(all("xn--80ak6aa92e")[0], "80ak6aa92e-8000-0e9b17");
        let of_long = all(&"a".repeat(63));
        assert_eq!(of_long[0], format!("{}-8000-0e9b17", "a".repeat(51)));
        assert!(of_long.iter().all(|label| label.len() == 63), "{of_long:?}");
        // The label of an id is no name's.
        assert_eq!(
            all("019aa8a54c1e7b529d0f6f0c6a0e9b17")[0],
            "019aa8a54c1e7b529d0f6f0c6a0e9b17-8000-0e9b17"
        );
    }
}

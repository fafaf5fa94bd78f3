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

/// The labels for the page of an instance in order of preference: its name, and its name with digits of
/// its id.
pub fn labels(name: &Name, id: InstanceId) -> impl Iterator<Item = String> {
    let name = name.as_str();
    let is_plain =
        !name.starts_with(PUNYCODE) && !RESERVED.contains(&name) && id_of(name).is_none();
    let mut stem = name;
    while let Some(rest) = stem.strip_prefix(PUNYCODE) {
        stem = rest.trim_start_matches('-');
    }
    let (stem, all) = (stem.to_owned(), of_id(id));
    let with_digits = DIGITS.into_iter().filter_map(move |digits| {
        // The end of an id is random.
        let end = all.get(all.len().checked_sub(digits)?..)?;
        let stem: String = stem.chars().take(MAX - 1 - digits).collect();
        Some(match stem.trim_end_matches('-') {
            "" => format!("page-{end}"),
            stem => format!("{stem}-{end}"),
        })
    });
    is_plain
        .then(|| name.to_owned())
        .into_iter()
        .chain(with_digits)
}

/// The label of an instance without another one. No name becomes such a label.
pub fn of_id(id: InstanceId) -> String {
    id.0.simple().to_string()
}

/// The instance of a label of [`of_id`].
pub fn id_of(label: &str) -> Option<InstanceId> {
    let is_form = label.len() == 32
        && label
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let id = Uuid::try_parse(label).ok().filter(|_| is_form)?;
    Some(InstanceId(id))
}

#[cfg(test)]
mod tests {
    use super::{id_of, labels, of_id};
    use crate::ids::InstanceId;
    use crate::name::Name;

    #[test]
    fn a_label_is_the_name_unless_it_is_reserved_or_of_another_script() {
        let id = InstanceId::parse("019aa8a5-4c1e-7b52-9d0f-6f0c6a0e9b17").unwrap();
        let all = |name: &str| labels(&Name::parse(name).unwrap(), id).collect::<Vec<_>>();
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
        assert_eq!(id_of(&of_id(id)), Some(id));
        assert_eq!(id_of("demo"), None);
    }
}

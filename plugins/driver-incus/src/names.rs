//! Names of Wharf's objects on the engine, and keys of their configuration.
//!
//! The name of an instance has all that identifies it, so that a list of names is enough, and an
//! instance of another incarnation has another name.

use wharf_guest::Tag;

/// Key: the installation that owns the instance.
pub const INSTALLATION: &str = "user.wharf.installation";
/// Key: digest of the instance's specification.
pub const SPEC: &str = "user.wharf.spec";
/// Key: [`BEGUN`], or another value after a start.
pub const START: &str = "user.wharf.start";
/// Key: the name of the instance behind a forward.
pub const INSTANCE: &str = "user.wharf.instance";
/// The value of [`START`] from before a start until the engine tells its end.
pub const BEGUN: &str = "begun";
/// Key: the last snapshot, and the most bytes that its data can take.
pub const SNAPSHOT: &str = "user.wharf.snapshot";
/// Key: the bytes that an instance shares with the snapshot from which it was made.
pub const BASE: &str = "user.wharf.base";
/// Key: the snapshot whose restore has begun and not ended.
pub const RESTORE: &str = "user.wharf.restore";
/// Key: `1` after an interrupted restore, whose left-over the engine keeps.
pub const LEFT_OVER: &str = "user.wharf.left-over";
/// Key of the image: whether instances from snapshots have secrets of their own.
pub const CLONABLE: &str = "image.io.wharf.clonable";
/// Key: `1` for an instance that has run on the node from which it has come.
pub const MOVED: &str = "user.wharf.moved";
/// Key of an image: the instance or the snapshot whose content it has.
pub const CONTENT: &str = "wharf.content";
/// Key: the mark of the store, on a volume that holds no data.
pub const MARK: &str = "user.wharf.mark";

/// Letters and digits of the installation's id in a name.
const INSTALLATION_END: usize = 8;

/// The name of an instance.
pub fn instance(installation: &str, tag: &Tag) -> String {
    format!(
        "{}{}-{}",
        prefix(installation),
        tag.instance,
        tag.incarnation
    )
}

/// The instance behind a name; none if it is not one of this installation.
pub fn tag(installation: &str, name: &str) -> Option<Tag> {
    let rest = name.strip_prefix(&prefix(installation))?;
    let (instance, incarnation) = rest.rsplit_once('-')?;
    let incarnation: u64 = incarnation.parse().ok()?;
    let tag = Tag {
        instance: instance.to_owned(),
        incarnation,
    };
    // `+1` and `01` parse too.
    (tag.instance.len() == UUID && self::instance(installation, &tag) == name).then_some(tag)
}

/// The length of a hyphenated UUID.
const UUID: usize = 36;

/// The volume with a name; none if it is not one of this installation.
pub fn volume<'a>(installation: &str, name: &'a str) -> Option<&'a str> {
    let prefix = prefix(installation).replacen("wh-", "wv-", 1);
    let id = name.strip_prefix(&prefix)?;
    (id.len() == UUID).then_some(id)
}

/// The name of a snapshot.
pub fn of_snapshot(id: &str) -> String {
    format!("wharf-{id}")
}

/// The id of the snapshot with a name; none if it is not one of Wharf.
pub fn snapshot(name: &str) -> Option<&str> {
    let id = name.strip_prefix("wharf-")?;
    (id.len() == UUID).then_some(id)
}

/// The name of an owner's network.
pub fn network(installation: &str, gateway: &str) -> String {
    format!("{}{gateway}", prefix(installation))
}

/// Whether a name is that of an owner's network.
pub fn is_network(installation: &str, name: &str) -> bool {
    let gateway = name.strip_prefix(&prefix(installation));
    gateway.is_some_and(|gateway| gateway.parse::<std::net::Ipv4Addr>().is_ok())
}

fn prefix(installation: &str) -> String {
    let letters: Vec<char> = installation
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let start = letters.len().saturating_sub(INSTALLATION_END);
    let end: String = letters.into_iter().skip(start).collect();
    format!("wh-{end}-")
}

#[cfg(test)]
mod tests {
    use super::{instance, tag};
    use wharf_guest::Tag;

    const HOME: &str = "11111111-2222-4333-8444-555555555555";
    const UUID: &str = "00000000-0000-4000-8000-000000000001";

    #[test]
    fn a_name_leads_back_to_its_tag() {
        let of = Tag {
            instance: UUID.into(),
            incarnation: 12,
        };
        let name = instance(HOME, &of);
        assert_eq!(name, format!("wh-55555555-{UUID}-12"));
        assert!(name.len() <= 63);
        let found = tag(HOME, &name).unwrap();
        assert_eq!((found.instance.as_str(), found.incarnation), (UUID, 12));
    }

    #[test]
    fn foreign_names_have_no_tag() {
        for name in [
            "c1".to_owned(),
            format!("wh-66666666-{UUID}-1"),
            format!("wh-55555555-{UUID}-01"),
            format!("wh-55555555-{UUID}-x"),
            "wh-55555555-short-1".to_owned(),
        ] {
            assert!(tag(HOME, &name).is_none(), "{name}");
        }
    }
}

//! Users of a version that stored addresses as they were typed.

use super::backend::Disk;
use super::migration::set_format;
use super::{assert_consistent, open};
use crate::{Change, Changes, Read};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

#[test]
fn addresses_get_one_form_unless_another_user_has_it_or_they_have_none() {
    let disk = Disk::new();
    let db = open(&disk).unwrap();
    let typed = [
        "Ann@Example.org",
        "Bob@example.org",
        "bob@example.org",
        "<eve@example.org>",
        "DAN@example.org",
        "dan@Example.org",
    ];
    for (number, email) in (1..).zip(typed) {
        let put = move |_: &crate::View<'_>| {
            let user = Change::PutUser(UserId(number), email.to_owned());
            Ok(((), Changes::none().with(user)))
        };
        db.write_blocking(put).unwrap();
    }
    drop(db);
    set_format(&disk, 7);
    for _ in 0..2 {
        let db = open(&disk).unwrap();
        let user_of = |email: &str| db.read(|rows| rows.user_of_email(email)).unwrap();
        let email_of = |user| -> Result<_, Error> { db.read(|rows| rows.email_of(UserId(user))) };
        let emails: Vec<_> = (1..=6)
            .map(|user| email_of(user).unwrap().unwrap())
            .collect();
        let expected = [
            "ann@example.org",
            "Bob@example.org",
            "bob@example.org",
            "<eve@example.org>",
            "dan@example.org",
            "dan@Example.org",
        ];
        assert_eq!(emails, expected);
        for (spelling, user) in [
            ("ANN@example.org", 1),
            ("Ann@Example.org", 1),
            ("Bob@example.org", 2),
            ("bob@example.org", 3),
            ("BOB@EXAMPLE.ORG", 3),
            ("<eve@example.org>", 4),
            ("Dan@Example.org", 5),
            ("dan@Example.org", 6),
        ] {
            assert_eq!(user_of(spelling), Some(UserId(user)), "{spelling}");
        }
        assert_eq!(user_of("eve@example.org"), None);
        assert_consistent(&db);
    }
}

//! The user's own settings on the account page.

use crate::desk::Desk;
use wharf_tests::until;

#[test]
fn a_user_permits_moves_on_the_account_page() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let permits = || {
        let read = desk.api.get("/api/preferences/")?.expect(200)?;
        Ok::<_, anyhow::Error>(read["allow_moves"] == true)
    };
    let checkbox = "document.querySelector('.checks input[type=checkbox]')";
    let shows = |checked: bool| {
        desk.open("/settings/account", "h1").unwrap();
        let ready = format!(
            "const box = {checkbox}; return box && !box.disabled && box.checked === {checked}"
        );
        browser.wait_for("the setting", &ready).unwrap();
    };
    for wanted in [true, false] {
        shows(!wanted);
        browser.run(&format!("{checkbox}.click()")).unwrap();
        until("the server has the setting", || {
            Ok((permits()? == wanted).then_some(()))
        })
        .unwrap();
        shows(wanted);
    }
    desk.picture("account-moves").unwrap();
}

//! Buckets and backups in the console.

use crate::axe;
use crate::desk::{Desk, container};
use serde_json::{Value, json};
use tempfile::TempDir;
use wharf_testkit::object_store::{ACCESS_KEY_ID, BUCKET, ObjectStore, SECRET_ACCESS_KEY};
use wharf_tests::{Ports, lasting_node, until};

const PASSPHRASE: &str = "correct horse battery staple";
/// The labels of the hidden fields of a new bucket.
const SECRETS: [&str; 3] = ["Secret of the access key", "Passphrase", "Passphrase again"];

/// An object store, and a desk whose server may send backups to it.
pub struct Offsite {
    pub desk: Desk,
    s3: ObjectStore,
    _directory: TempDir,
}

impl Offsite {
    pub fn start(nodes: &str) -> Option<Self> {
        let settings = format!(
            "{}[buckets]\nhttp = true\nallow = [\"127.0.0.0/8\"]\n{nodes}",
            Ports::take().settings()
        );
        let desk = Desk::start_with(&settings).unwrap()?;
        let directory = tempfile::tempdir().unwrap();
        let s3 = ObjectStore::start(directory.path()).unwrap();
        Some(Self {
            desk,
            s3,
            _directory: directory,
        })
    }

    /// Sends a backup of an instance to a new bucket, by the interface.
    pub fn backup(&self, instance: &str) {
        let api = &self.desk.api;
        let bucket = json!({
            "name": "offsite", "endpoint": self.s3.url, "bucket": BUCKET, "passphrase": PASSPHRASE,
            "access_key_id": ACCESS_KEY_ID, "secret_access_key": SECRET_ACCESS_KEY,
        });
        let path = format!("/api/instance/{instance}/backup/");
        let of = json!({ "bucket": "offsite" });
        for (path, body) in [("/api/bucket/", bucket), (path.as_str(), of)] {
            let made = api.send("POST", path, &body).unwrap();
            made.expect(201).unwrap();
        }
        until("the backup is done", || {
            let listed = api.get("/api/backup/")?.expect(200)?;
            Ok((listed[0]["state"] == "done").then_some(()))
        })
        .unwrap();
    }

    /// Types into the field with a label.
    fn fill(&self, label: &str, text: &str) {
        let script = format!(
            "const label = [...document.querySelectorAll('label')].find((l) => l.textContent === {});
             if (!label) return false;
             label.control.focus();
             label.control.select();
             return true",
            json!(label)
        );
        self.desk.browser.wait_for(label, &script).unwrap();
        self.desk.browser.type_keys(text).unwrap();
    }

    fn fill_secrets(&self, passphrase: &str) {
        for (label, text) in SECRETS
            .into_iter()
            .zip([SECRET_ACCESS_KEY, passphrase, passphrase])
        {
            self.fill(label, text);
        }
    }

    /// Presses the button whose name begins with this, and waits for its dialog.
    fn press(&self, label: &str) {
        let script = format!(
            "const button = document.querySelector('[aria-label^={}]'); button?.click();
             return Boolean(button)",
            json!(label)
        );
        self.desk.browser.wait_for(label, &script).unwrap();
        self.desk.wait_for_dialog().unwrap();
    }

    fn look(&self, name: &str) {
        self.desk.settle().unwrap();
        self.desk.picture(name).unwrap();
        axe::check(&self.desk.browser, name).unwrap();
    }
}

#[test]
fn an_instance_is_backed_up_restored_planned_and_created_again() {
    let away = tempfile::tempdir().unwrap();
    let away = away.path().join("away");
    let settings = "content = true, volume_content = \"at_any_time\"";
    let unreachable = format!("{settings}, unreachable_while = \"{}\"", away.display());
    let (one, _one) = lasting_node("one", &unreachable).unwrap();
    let (two, _two) = lasting_node("two", settings).unwrap();
    let two = two.replace("203.0.113.0/28", "203.0.113.16/28");
    let Some(offsite) = Offsite::start(&format!("{one}{two}")) else {
        return;
    };
    let (desk, browser) = (&offsite.desk, &offsite.desk.browser);
    let see = |words: &str| browser.wait_for_text(words).unwrap();
    let backups = || -> Vec<Value> {
        let list = desk.api.get("/api/backup/").unwrap().expect(200).unwrap();
        list.as_array().unwrap().clone()
    };
    let confirm = "document.querySelector('dialog[open] .danger').click()";
    desk.server.cli(&["node", "drain", "two"]).unwrap();
    let send = |path: &str, body: &Value| {
        let sent = desk.api.send("POST", path, body).unwrap();
        sent.expect(201).unwrap()
    };
    for name in ["data", "scratch"] {
        send("/api/volume/", &json!({ "name": name, "size_gib": 10 }));
    }
    let mut body = container("box");
    body["volumes"] = json!([
        { "volume": "data", "path": "/data" },
        { "volume": "scratch", "path": "/scratch" },
    ]);
    send("/api/instance/", &body);
    desk.api.wait_for("box", "running").unwrap();
    desk.server.cli(&["node", "resume", "two"]).unwrap();

    desk.open("/instances/box#backups", ".none").unwrap();
    desk.click("Add a bucket").unwrap();
    desk.wait_for_title("Buckets").unwrap();
    see("There are no buckets yet.");
    for (label, text) in [
        ("Name", "offsite"),
        ("Endpoint", offsite.s3.url.as_str()),
        ("Bucket", BUCKET),
        ("Access key", ACCESS_KEY_ID),
    ] {
        offsite.fill(label, text);
    }
    offsite.fill_secrets("too short");
    let command = format!(
        "wharf bucket add offsite --endpoint {} --bucket {BUCKET}",
        offsite.s3.url
    );
    see(&command);
    desk.click("Add bucket").unwrap();
    // A refusal is beside its field, and the secrets are forgotten.
    see("Passphrase must");
    let left = "return [...document.querySelectorAll('input[type=password]')].map((e) => e.value)";
    assert_eq!(browser.run(left).unwrap(), json!(["", "", ""]));
    offsite.look("bucket-refused");
    offsite.fill_secrets(PASSPHRASE);
    desk.click("Add bucket").unwrap();
    desk.wait_for_title("offsite").unwrap();
    see("There are no backups in this bucket.");
    for secret in [SECRET_ACCESS_KEY, PASSPHRASE] {
        let page = browser.run("return document.documentElement.outerHTML");
        assert!(!page.unwrap().as_str().unwrap().contains(secret));
    }

    let of_volume = send("/api/volume/data/backup/", &json!({ "bucket": "offsite" }));
    let of_volume = format!("/api/backup/{}/", of_volume["id"].as_str().unwrap());
    until("the backup of the volume is done", || {
        let now = desk.api.get(&of_volume)?.expect(200)?;
        Ok((now["state"] == "done").then_some(()))
    })
    .unwrap();
    desk.open("/volumes/data", ".form").unwrap();
    see("wharf bucket plan set data offsite --every 24 --keep 7 --volume");
    offsite.look("volume-backups");
    desk.open("/instances/box#backups", ".form").unwrap();
    see("This instance has no backups.");
    see("wharf bucket send box offsite --wait");
    desk.click("Back up").unwrap();
    browser
        .wait_for(
            "the backup is done",
            "return document.querySelector('td .state.done') !== null",
        )
        .unwrap();
    desk.click("Verify").unwrap();
    browser
        .wait_for(
            "the backup is verified",
            "return document.querySelector('td:nth-of-type(4) time') !== null",
        )
        .unwrap();

    see("wharf bucket plan set box offsite --every 24 --keep 7");
    desk.click("Set the plan").unwrap();
    see("The next backup is due on");
    offsite.look("backups");
    offsite.press("Restore the backup of");
    desk.fill("dialog input[placeholder=calm-heron-7]", "copy")
        .unwrap();
    see("copy --vcpus 2 --mem 4 --disk 40 --wait");
    offsite.look("restore-backup");
    desk.fill("dialog input[name=disk_size_gib]", "39").unwrap();
    desk.click("Create instance").unwrap();
    see("Disk in GiB must be");
    desk.fill("dialog input[name=disk_size_gib]", "40").unwrap();
    desk.click("Create instance").unwrap();
    desk.wait_for_title("copy").unwrap();
    desk.wait_for_state("Running").unwrap();

    // The plan keeps its bucket.
    desk.open("/settings/buckets", "table").unwrap();
    offsite.press("Forget offsite");
    see("The backups stay in it");
    browser.run(confirm).unwrap();
    browser
        .wait_for(
            "the refusal",
            "return document.querySelector('dialog .alert')?.textContent.includes('box')",
        )
        .unwrap();
    desk.open("/instances/box#backups", "table").unwrap();
    desk.click("End the plan").unwrap();
    browser
        .wait_for(
            "the plan has ended",
            "return !document.body.textContent.includes('is due on')",
        )
        .unwrap();

    std::fs::write(&away, "").unwrap();
    until("the node is out of reach", || {
        let list = desk.server.cli(&["node", "list"])?;
        Ok(list.contains("out of reach").then_some(()))
    })
    .unwrap();
    desk.server.cli(&["node", "lost", "one", "--yes"]).unwrap();
    desk.wait_for_state("Error").unwrap();
    desk.click("Create again").unwrap();
    desk.wait_for_dialog().unwrap();
    see("The newest backup, of");
    see("all changes in between are missing");
    let newest = backups()[0]["id"].as_str().unwrap().to_owned();
    see(&format!("wharf recreate box --backup {newest}"));
    see("data at /data: made again from its backup of");
    see("It comes back without the volume scratch.");
    offsite.look("recreate");
    let choose = |n: usize, value: &str| {
        let script = format!(
            "const select = document.querySelectorAll('dialog select')[{n}]; select.value = {};
             select.dispatchEvent(new Event('change', {{ bubbles: true }}))",
            json!(value)
        );
        browser.run(&script).unwrap();
    };
    choose(0, "empty");
    choose(1, "without");
    see("wharf recreate box --empty --without-volumes");
    see("It comes back without the volumes data and scratch.");
    choose(0, "backup");
    choose(1, "with");
    desk.click("Create from the backup").unwrap();
    desk.wait_for_state("Running").unwrap();
    let now = desk.api.instance("box").unwrap().expect(200).unwrap();
    assert_eq!(now["volumes"][0]["path"], "/data", "{now}");
    let removed = desk.api.send("DELETE", &of_volume, &Value::Null).unwrap();
    removed.expect(204).unwrap();

    // Backups stay without their instance.
    desk.api.delete("box").unwrap().expect(204).unwrap();
    desk.open("/settings/buckets/offsite", "table").unwrap();
    see("base · gone");
    offsite.look("bucket");
    offsite.press("Delete the backup of box");
    see("The copy in the bucket is lost");
    browser.run(confirm).unwrap();
    see("There are no backups in this bucket.");
    assert!(backups().is_empty());
    desk.click("Forget").unwrap();
    desk.wait_for_dialog().unwrap();
    // It is refused until the objects of the backup are gone.
    let forgotten = "document.querySelector('dialog[open] .danger:not(:disabled)')?.click();
        return document.querySelector('h1').textContent === 'Buckets'";
    browser
        .wait_for("the bucket is forgotten", forgotten)
        .unwrap();
    see("There are no buckets yet.");
}

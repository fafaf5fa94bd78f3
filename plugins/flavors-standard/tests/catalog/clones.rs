//! The first start on a disk that has the secrets of another instance. Those of AI providers are a subject of
//! `tests/tools`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const OLD: &str = "secret-of-the-source";
const NEW: &str = "secret-of-the-clone";
const RUNTIME: &str = "home/user/.local/share/jupyter/runtime";

/// The disk of a clone, below a directory.
struct Disk(PathBuf);

impl Disk {
    fn new(name: &str) -> Self {
        let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(fs::remove_dir_all(&here));
        fs::create_dir_all(here.join("first-boot")).unwrap();
        Self(here)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The content of a file; none if it is not there.
    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    /// Runs a hook of the first start.
    fn run(&self, recipe: &str, hook: &str, service: &str) {
        let recipe = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("images")
            .join(recipe);
        let hooks = recipe.join("files/usr/local/lib/wharf/first-boot.d");
        let script = fs::read_to_string(hooks.join(hook)).unwrap();
        let here = self.0.display().to_string();
        let script = script
            .replace("/var/lib/wharf", &format!("{here}/state"))
            .replace("/var/lib/rstudio-server", &format!("{here}/rstudio"))
            .replace("/etc/nginx", &format!("{here}/nginx"))
            .replace("/home/", &format!("{here}/home/"))
            .replace("chown ", ": ")
            .replace("install -o \"$1\" -g \"$1\"", "install");
        let ended = Command::new("sh")
            .args(["-c", &script, hook, "user"])
            .env("FIRST_BOOT", self.0.join("first-boot"))
            .env("HOME", self.0.join("home/user"))
            .env("WHARF_SERVICE", service)
            .status();
        assert!(ended.unwrap().success());
    }
}

#[test]
fn no_secret_of_a_page_is_cloned() {
    let runtime = [
        format!("{RUNTIME}/jupyter_cookie_secret"),
        format!("{RUNTIME}/jpserver-7.json"),
    ];
    for (service, kept) in [
        ("marimo", "state/web-password"),
        ("jupyterlab", "state/web-token"),
    ] {
        let disk = Disk::new("page");
        for path in ["state/web-password", "state/web-token"] {
            disk.write(path, OLD);
        }
        for path in &runtime {
            disk.write(path, OLD);
        }
        disk.run("common", "web-password", service);
        assert_eq!(
            (
                disk.read("state/web-password"),
                disk.read("state/web-token")
            ),
            (None, None)
        );
        disk.write("first-boot/web_password", NEW);
        disk.write("first-boot/web_token", NEW);
        disk.run("common", "web-password", service);
        assert_eq!(disk.read(kept).as_deref(), Some(NEW));
        assert!(runtime.iter().all(|path| disk.read(path).is_none()));
    }
}

#[test]
fn no_secret_of_rstudio_is_cloned() {
    let disk = Disk::new("rstudio");
    let (token, cookies) = ("nginx/wharf-token.conf", "rstudio/secure-cookie-key");
    disk.write("first-boot/web_token", NEW);
    for private_page in [false, true] {
        disk.write(token, OLD);
        disk.write(cookies, OLD);
        if private_page {
            disk.write("first-boot/private_page", "\n");
        }
        disk.run("rstudio", "rstudio", "rstudio");
        assert_eq!(disk.read(cookies), None);
        let text = disk.read(token);
        // A public page has the sign-in with the password alone.
        assert_eq!(text.is_some(), private_page);
        assert!(text.is_none_or(|text| text.contains(NEW) && !text.contains(OLD)));
    }
}

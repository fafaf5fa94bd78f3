//! The first start on a disk that has the secrets of another instance.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The source's secrets.
const OLD: &str = "sk-ant-of-the-source";
const NEW: &str = "sk-or-of-the-clone";
const TERMINAL: &str = "home/user/.local/share/opencode/auth.json";
const MARIMO: &str = "home/user/.config/marimo/marimo.toml";
const JUPYTER: &str = "home/user/.env";
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
    fn run(&self, hook: &str, service: &str) {
        let files = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/images/common/files/usr/local/lib/wharf"
        );
        let script = fs::read_to_string(Path::new(files).join("first-boot.d").join(hook)).unwrap();
        let here = self.0.display().to_string();
        let script = script
            .replace("/usr/local/lib/wharf/as-user", "env")
            .replace("/usr/local/lib/wharf", files)
            .replace("/var/lib/wharf", &format!("{here}/state"))
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
fn no_key_of_an_ai_provider_is_cloned() {
    let line = format!("ANTHROPIC_API_KEY=\"{OLD}\"\n");
    // A user's own variables stay, and a line that is not Wharf's.
    for (env, without, with) in [
        (line.clone(), None, ""),
        (
            format!("{line}A=1\nB=\"2\"\n"),
            Some("A=1\nB=\"2\"\n"),
            "A=1\nB=\"2\"\n",
        ),
        ("A=1\n".to_owned(), Some("A=1\n"), "A=1\n"),
    ] {
        let source = || {
            let disk = Disk::new("ai");
            disk.write(TERMINAL, &format!("{{\"anthropic\": \"{OLD}\"}}"));
            let settings = format!(
                "[display]\ntheme = \"dark\"\n\n[ai.anthropic]\napi_key = \"{OLD}\"\n\
                 [ai.open_ai]\nmodel = \"m\"\napi_key = \"{OLD}\"\n"
            );
            disk.write(MARIMO, &settings);
            disk.write(JUPYTER, &env);
            disk
        };
        let disk = source();
        disk.run("assistant", "jupyterlab");
        assert_eq!(disk.read(TERMINAL), None);
        let settings = disk.read(MARIMO).unwrap();
        assert!(!settings.contains(OLD), "{settings}");
        assert!(settings.contains("theme = \"dark\"") && settings.contains("model = \"m\""));
        assert_eq!(disk.read(JUPYTER).as_deref(), without);

        let disk = source();
        disk.write("first-boot/ai_provider_api_key", NEW);
        // An interrupted first start is repeated.
        for _ in 0..2 {
            disk.run("assistant", "jupyterlab");
            assert!(disk.read(TERMINAL).unwrap().contains(NEW));
            let wanted = format!("OPENROUTER_API_KEY=\"{NEW}\"\n{with}");
            assert_eq!(disk.read(JUPYTER), Some(wanted));
        }
        assert!(!disk.read(MARIMO).unwrap().contains(OLD));
    }
}

#[test]
fn the_key_of_a_clone_leaves_the_other_settings_of_marimo() {
    let line = format!("api_key = \"{NEW}\"\n");
    for (before, after) in [
        ("", format!("[ai.openrouter]\n{line}")),
        (
            "[ai.openrouter]\napi_key = \"old\"\nbase_url = \"u\"\n\n[display]\ntheme = \"dark\"\n",
            format!("[ai.openrouter]\n{line}base_url = \"u\"\n\n[display]\ntheme = \"dark\"\n"),
        ),
        (
            "[display]\ntheme = \"dark\"\n\n[ai.anthropic]\napi_key = \"old\"\nmodel = \"m\"\n",
            format!(
                "[display]\ntheme = \"dark\"\n\n[ai.anthropic]\nmodel = \"m\"\n[ai.openrouter]\n{line}"
            ),
        ),
    ] {
        let disk = Disk::new("marimo");
        disk.write(MARIMO, before);
        disk.write("first-boot/ai_provider_api_key", NEW);
        // An interrupted first start is repeated.
        for _ in 0..2 {
            disk.run("assistant", "marimo");
            assert_eq!(disk.read(MARIMO).as_deref(), Some(after.as_str()));
        }
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
        disk.run("web-password", service);
        assert_eq!(
            (
                disk.read("state/web-password"),
                disk.read("state/web-token")
            ),
            (None, None)
        );
        disk.write("first-boot/web_password", NEW);
        disk.write("first-boot/web_token", NEW);
        disk.run("web-password", service);
        assert_eq!(disk.read(kept).as_deref(), Some(NEW));
        assert!(runtime.iter().all(|path| disk.read(path).is_none()));
    }
}

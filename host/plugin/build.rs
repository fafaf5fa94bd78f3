//! Builds the plugins that are embedded in the binary, and writes their list for `embedded.rs`. A cargo of
//! their own builds them, because they have another target.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const TARGET: &str = "wasm32-wasip2";
const PROFILE: &str = "plugin";

/// The beginnings of the names of embedded packages below `plugins`. A driver has the file of its requests
/// beside it.
const EMBEDDED: [&str; 2] = ["driver-", "flavors-"];

/// A directory with components that were built before, such as `target/plugins/wasm32-wasip2/plugin`:
/// nothing is built then. For toolchains that lack the target.
const PREBUILT: &str = "WHARF_PREBUILT_PLUGINS";

/// Variables of cargo, clippy and rustc that describe the host's own build, and would change the
/// plugins' build.
const INHERITED: [&str; 15] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "CLIPPY_ARGS",
    "DEBUG",
    "HOST",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "TARGET",
];
const INHERITED_PREFIXES: [&str; 7] = [
    "CARGO_CFG_",
    "CARGO_FEATURE_",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "DEP_",
];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            for line in why.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let workspace = manifest
        .ancestors()
        .nth(2)
        .ok_or("the package is not in host/ of a workspace")?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=WHARF_TARGET={}", variable("TARGET")?);
    let packages = packages(&workspace.join("plugins"))?;
    println!("cargo::rerun-if-env-changed={PREBUILT}");
    let components = match env::var_os(PREBUILT) {
        // Relative to the workspace: cargo runs this elsewhere.
        Some(directory) => workspace.join(directory),
        None => compile(workspace, &packages)?,
    };
    let (mut plugins, mut requests) = (String::new(), String::new());
    for package in &packages {
        let file = format!("{}.wasm", package.replace('-', "_"));
        let component = components.join(file);
        if env::var_os(PREBUILT).is_some() {
            println!("cargo::rerun-if-changed={}", component.display());
        }
        if !component.is_file() {
            return Err(format!(
                "there is no component of {package} at {}: if {PREBUILT} is set, is it the \
                 directory of all of them? If not, is the package's crate-type cdylib?",
                component.display()
            ));
        }
        plugins.push_str(&format!("({package:?}, include_bytes!({component:?})),\n"));
        if package.starts_with("driver-") {
            let file = workspace
                .join("plugins")
                .join(package)
                .join("requests.toml");
            println!("cargo::rerun-if-changed={}", file.display());
            requests.push_str(&format!("({package:?}, include_str!({file:?})),\n"));
        }
    }
    let list = format!(
        "pub const EMBEDDED: &[(&str, &[u8])] = &[\n{plugins}];\n\
         pub const REQUESTS: &[(&str, &str)] = &[\n{requests}];\n"
    );
    let path = PathBuf::from(variable("OUT_DIR")?).join("embedded.rs");
    std::fs::write(&path, list).map_err(|error| format!("{}: {error}", path.display()))
}

fn packages(plugins: &Path) -> Result<Vec<String>, String> {
    // A new package changes the lock file, which is watched.
    let unreadable = |error| format!("{}: {error}", plugins.display());
    let mut packages = Vec::new();
    for entry in std::fs::read_dir(plugins).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let name = name.to_string_lossy().into_owned();
        if EMBEDDED.iter().any(|start| name.starts_with(start)) {
            packages.push(name);
        }
    }
    packages.sort();
    Ok(packages)
}

/// Only what goes into the components: the images beside the flavors are none of it.
fn watch(workspace: &Path, packages: &[String]) {
    for package in packages.iter().map(String::as_str).chain(["sdk"]) {
        for part in ["src", "Cargo.toml"] {
            let path = workspace.join("plugins").join(package).join(part);
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    for path in ["wit", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", workspace.join(path).display());
    }
}

fn require_target() -> Result<(), String> {
    let output = Command::new(variable("RUSTC")?)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| format!("rustc does not run: {error}"))?;
    let directory = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && Path::new(directory.trim()).is_dir() {
        return Ok(());
    }
    Err(format!(
        "the plugins need the Rust target {TARGET}, which is not installed.\n\
         Run `rustup target add {TARGET}` and build again (`cargo xtask build` does both)."
    ))
}

/// The directory of the components.
fn compile(workspace: &Path, packages: &[String]) -> Result<PathBuf, String> {
    watch(workspace, packages);
    require_target()?;
    let target_dir = workspace.join("target/plugins");
    let mut cargo = Command::new(variable("CARGO")?);
    for (name, value) in env::vars_os() {
        let text = name.to_string_lossy();
        // `cargo clippy` has a wrapper that checks crates and compiles none.
        let checks_only = text == "RUSTC_WORKSPACE_WRAPPER"
            && Path::new(&value).file_stem() == Some("clippy-driver".as_ref());
        let is_inherited =
            INHERITED.contains(&&*text) || INHERITED_PREFIXES.iter().any(|p| text.starts_with(p));
        if checks_only || is_inherited {
            cargo.env_remove(&name);
        }
    }
    cargo
        .current_dir(workspace)
        .args(["build", "--locked", "--lib", "--target", TARGET])
        .args(["--profile", PROFILE, "--target-dir"])
        .arg(&target_dir);
    for package in packages {
        cargo.args(["--package", package]);
    }
    let status = cargo
        .status()
        .map_err(|error| format!("cargo does not run: {error}"))?;
    if status.success() {
        return Ok(target_dir.join(TARGET).join(PROFILE));
    }
    Err("the plugins did not build; cargo's messages are above".to_owned())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("{name} is not set; cargo sets it for build scripts"))
}

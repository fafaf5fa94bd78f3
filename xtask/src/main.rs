//! `cargo xtask`: see [`xtask`].

use anyhow::Result;
use clap::Parser;
use xtask::{
    bench, build, ci, conformance, engine, http, images, schemas, test, tidy, up, workspace,
};

/// Everything that is done to this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// From nothing to a running Wharf with a first instance; Ctrl-C ends it.
    Up(up::Options),
    /// Build the server in release, with its plugins.
    Build,
    /// Build what is needed and run every test, or those whose names contain FILTER.
    Test {
        /// Part of a test's name.
        filter: Option<String>,
        /// Make and prove the images of all flavors, not only of those that are quick to make.
        #[arg(long)]
        all_flavors: bool,
    },
    /// Hold a service against every rule of the interface; without a URL, Wharf itself on the
    /// simulated engine.
    Conformance(Box<conformance::Options>),
    /// Make the images of the standard flavors, all or those named.
    Images {
        /// Directories below plugins/flavors-standard/images.
        names: Vec<String>,
        /// The engine that gets them, unix:///path; without it, that of `cargo xtask up`.
        #[arg(long)]
        engine: Option<String>,
    },
    /// Make schemas/generated from schemas/openapi.yaml.
    Schemas {
        /// Change nothing; fail if they do not match.
        #[arg(long)]
        check: bool,
    },
    /// Measure Wharf beside baselines in the same run; `-- --help` has the options.
    Bench {
        /// Such as --quick, --engine, --peers.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Check the rules of the house: dependency direction, words, file lengths.
    Tidy,
    /// Everything the continuous integration does.
    Ci,
}

fn main() -> Result<()> {
    match Task::parse() {
        Task::Up(options) => up::run(&options),
        Task::Build => build::wharf(),
        Task::Test {
            filter,
            all_flavors,
        } => test::run_all(filter.as_deref(), all_flavors),
        Task::Conformance(options) => conformance::run(&options),
        Task::Images { names, engine } => make_images(names, engine),
        Task::Schemas { check } => schemas::run(workspace::root(), check),
        Task::Bench { arguments } => bench::run_with(&arguments),
        Task::Tidy => tidy::run(),
        Task::Ci => ci::run_all(),
    }
}

fn make_images(names: Vec<String>, endpoint: Option<String>) -> Result<()> {
    let names = if names.is_empty() {
        images::names()?
    } else {
        names
    };
    if let Some(endpoint) = endpoint {
        return images::ensure(
            &http::Client::new(http::Endpoint::parse(&endpoint)?),
            &names,
        );
    }
    let engine = engine::PrivateEngine::start(up::engine_options()?)?;
    images::ensure(&engine.client(), &names)?;
    engine.stop()
}

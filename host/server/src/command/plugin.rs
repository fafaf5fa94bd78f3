//! `wharf plugin`.

use super::counted;
use super::operator::OperatorCommand;
use super::prove::Prove;
use anyhow::{Context, Result, anyhow};
use clap::{Args, Subcommand};
use std::io::Write;
use std::path::{Path, PathBuf};
use wharf_plugin::Review;

/// Review the requests of a driver, and prove that it keeps the promises of its interface
#[derive(Args)]
pub struct Plugin {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Subcommand)]
enum PluginCommand {
    /// Describe the requests of a driver in words, and the parts of them that need a second look
    ///
    /// No server needs to run. The exit status is 1 when the file is not valid, and 0 with warnings.
    Check {
        /// A file such as driver-x.requests.toml, or the name of a driver that is part of Wharf
        file: PathBuf,
    },
    /// Print a request as Wharf would send it in a sample of a call
    ///
    /// No server needs to run. Files are shown with their sizes, and no secret is shown.
    Render {
        /// A file such as driver-x.requests.toml, or the name of a driver that is part of Wharf
        file: PathBuf,
        /// The name of the request
        request: String,
        /// A JSON file with members of the sample; without it, the creation of a container
        #[arg(long, value_name = "FILE")]
        call: Option<PathBuf>,
        /// An argument of the request; may be repeated
        #[arg(long, value_name = "NAME=VALUE", value_parser = argument)]
        set: Vec<(String, String)>,
    },
    Prove(Box<Prove>),
    /// Compile the plugins that are part of Wharf, for packages
    ///
    /// A server reads `PREFIX/lib/wharf/plugins`, if its program is `PREFIX/bin/wharf` and no other account
    /// can change the files.
    #[command(hide = true)]
    Precompile {
        /// The directory for the compiled plugins
        directory: PathBuf,
    },
}

impl OperatorCommand for Plugin {
    fn run(self) -> Result<()> {
        match self.command {
            PluginCommand::Check { file } => check(&file),
            PluginCommand::Render {
                file,
                request,
                call,
                set,
            } => {
                let sample = match &call {
                    Some(path) => std::fs::read_to_string(path)
                        .with_context(|| format!("cannot read {}", path.display()))?,
                    None => "{}".to_owned(),
                };
                let written = review(&file)?.render(&request, &sample, &set);
                let written = written.map_err(|why| anyhow!("{}: {why}", file.display()))?;
                std::io::stdout().lock().write_all(written.as_bytes())?;
                Ok(())
            }
            PluginCommand::Prove(prove) => prove.run(),
            PluginCommand::Precompile { directory } => Ok(wharf_plugin::precompile(&directory)?),
        }
    }
}

fn argument(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn check(file: &Path) -> Result<()> {
    let review = review(file)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}\n", review.file.explain().trim_end())?;
    if let Some((name, hash)) = &review.approval {
        writeln!(out, "To approve these requests, set in the configuration:")?;
        writeln!(out, "  [plugins]\n  {name:?} = {hash:?}\n")?;
    }
    let findings = review.file.lint();
    for finding in &findings {
        writeln!(out, "warning: {finding}")?;
    }
    let warnings = counted(findings.len(), "warning");
    writeln!(out, "the file is valid, with {warnings}")?;
    Ok(())
}

fn review(file: &Path) -> Result<Review> {
    let shown = file.display();
    if file
        .extension()
        .is_some_and(|extension| extension == "wasm")
    {
        let requests = file.with_extension("requests.toml");
        return Err(anyhow!(
            "{shown} is a driver; its requests are in {}",
            requests.display()
        ));
    }
    if !file.exists()
        && let Some(review) = file.to_str().and_then(Review::of_program)
    {
        return Ok(review);
    }
    let text = std::fs::read(file).with_context(|| format!("cannot read {shown}"))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Review::new(&name, &text).map_err(|why| anyhow!("{shown}: {why}"))
}

//! `wharf images`.

use super::ConfigFile;
use super::operator::OperatorCommand;
use crate::node_tls::{self, NodeTls};
use crate::registries;
use anyhow::{Context, Error, Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;
use wharf_cli::output::Column::Text;
use wharf_cli::output::{OutputFormat, json, table};
use wharf_config::{Config, NodeConfig};
use wharf_images::http::{Endpoint, HttpClient};
use wharf_images::incus::IncusProject;
use wharf_images::{Accounts, FoundImage, ImageState, MadeImage, Recipes, load};

/// The operator's file of sources where nothing names another one.
const SOURCES: &str = "/etc/wharf/images.toml";

/// Show, build, load or save the images of flavors on nodes
#[derive(Args)]
pub struct Images {
    #[command(subcommand)]
    action: Option<ImagesAction>,
    /// The engine, such as unix:///run/docker.sock; without it, the nodes of the configuration
    #[arg(long, value_name = "ENDPOINT", global = true)]
    engine: Option<String>,
    /// Only this node of the configuration
    #[arg(long, value_name = "NODE", global = true, conflicts_with = "engine")]
    node: Option<String>,
    /// Directory of the recipes of images [default: share/wharf/images beside the program's directory]
    #[arg(long, value_name = "DIRECTORY", global = true)]
    recipes: Option<PathBuf>,
    /// Directory for root file systems and disks, which other nodes reuse
    #[arg(
        long,
        value_name = "DIRECTORY",
        global = true,
        default_value = "/var/cache/wharf/images"
    )]
    cache: PathBuf,
    /// The operator's file of sources, over the one of the recipes [default: /etc/wharf/images.toml, if it is there]
    #[arg(long, value_name = "FILE", global = true)]
    sources: Option<PathBuf>,
    /// File with the digests of sources at their first use [default: images.recorded.toml beside the operator's file]
    #[arg(long, value_name = "FILE", global = true)]
    recorded: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFile,
    /// Format of what is shown: columns for people, or JSON for programs
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        global = true
    )]
    output: OutputFormat,
}

#[derive(Subcommand)]
enum ImagesAction {
    /// Make images, unless a node has current ones; each from the first of its sources that can be taken
    Build {
        /// Names of images, such as base
        #[arg(required_unless_present = "all")]
        names: Vec<String>,
        /// All images except those for GPUs
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// Take no substitute, and make images again that are substitutes
        #[arg(long)]
        original: bool,
        /// Take the present sources of the named images, and record their digests in place of the earlier ones
        #[arg(long)]
        renew: bool,
        /// The engine that builds images for Incus, such as unix:///run/docker.sock; without it, the first node with
        /// the driver docker
        #[arg(long, value_name = "ENDPOINT")]
        builder: Option<String>,
    },
    /// Load the images of a file, such as `wharf images save` writes
    Load {
        /// The file, a tar
        file: PathBuf,
    },
    /// Write an image of a node to a file
    Save {
        /// The name of the image, such as base
        name: String,
        /// The file
        file: PathBuf,
    },
}

/// An engine, with the name of its node if it has one.
struct Engine {
    name: String,
    client: HttpClient,
    /// The project that gets the images, on Incus.
    project: Option<String>,
}

impl Engine {
    fn of_incus(&self) -> Option<IncusProject> {
        let name = self.project.clone()?;
        let client = self.client.clone();
        Some(IncusProject { client, name })
    }

    /// Makes images. Those of virtual machines are not for Incus.
    fn ensure(
        &self,
        recipes: &Recipes,
        names: &[String],
        builder: Option<&HttpClient>,
    ) -> Result<Vec<MadeImage>> {
        match self.of_incus() {
            Some(project) => {
                let names = recipes.of_containers(names)?;
                project.ensure(recipes, &names, builder)
            }
            None => recipes.ensure(&self.client, names),
        }
    }

    fn find(&self, recipes: &Recipes, name: &str) -> Result<FoundImage> {
        match self.of_incus() {
            Some(project) => project.find(recipes, name),
            None => recipes.find(&self.client, name),
        }
    }

    /// The client, if the engine takes and gives images as files of `docker save`.
    fn of_docker(&self) -> Result<&HttpClient> {
        match self.project {
            Some(_) => {
                bail!("Incus has other files of images; `wharf images build` makes them there")
            }
            None => Ok(&self.client),
        }
    }
}

impl OperatorCommand for Images {
    fn run(self) -> Result<()> {
        let accounts = match self.action {
            Some(ImagesAction::Build { .. }) => self.accounts()?,
            _ => Accounts::default(),
        };
        let own = || Some(PathBuf::from(SOURCES)).filter(|file| file.exists());
        let sources = self.sources.clone().or_else(own);
        let beside = sources.clone().unwrap_or_else(|| SOURCES.into());
        let recorded = self.recorded.clone();
        let mut recipes = Recipes {
            accounts,
            sources,
            recorded: recorded.unwrap_or_else(|| beside.with_extension("recorded.toml")),
            ..Recipes::new(
                self.recipes.clone().unwrap_or_else(shipped),
                self.cache.clone(),
            )
        };
        let engines = self.engines()?;
        match self.action {
            None => show(&recipes, &engines, self.output),
            Some(ImagesAction::Build {
                names,
                all,
                original,
                renew,
                builder,
            }) => {
                let names = if all { recipes.names()? } else { names };
                recipes.only_originals = original;
                recipes.renews = renew;
                let builder =
                    builder.map(|endpoint| Endpoint::parse(&endpoint).map(HttpClient::new));
                let builder = builder.transpose().context("--builder")?;
                build(recipes, &engines, &names, builder, self.output)
            }
            Some(ImagesAction::Load { file }) => {
                each(&engines, |engine| load(engine.of_docker()?, &file))
            }
            Some(ImagesAction::Save { name, file }) => match engines.as_slice() {
                [engine] => recipes.save(engine.of_docker()?, &name, &file),
                _ => bail!("several nodes are configured: name one with --node"),
            },
        }
    }
}

impl Images {
    /// The accounts of the configuration. An engine that is named by itself gets those of a named one alone.
    fn accounts(&self) -> Result<Accounts> {
        if self.engine.is_some() && !self.config.is_named() {
            return Ok(Accounts::default());
        }
        Ok(registries::for_builds(&self.config.load()?)?)
    }

    fn engines(&self) -> Result<Vec<Engine>> {
        if let Some(endpoint) = &self.engine {
            let client = HttpClient::new(Endpoint::parse(endpoint).context("--engine")?);
            let name = endpoint.clone();
            return Ok(vec![Engine {
                name,
                client,
                project: None,
            }]);
        }
        let engines = of_nodes(&self.config.load()?, self.node.as_deref())?;
        match (engines.is_empty(), &self.node) {
            (false, _) => Ok(engines),
            (true, Some(node)) => bail!("--node: no node {node:?} with the driver docker or incus"),
            (true, None) => bail!("no node of the configuration has the driver docker or incus"),
        }
    }
}

/// The engines of the nodes with containers from images. The members of an Incus cluster share theirs.
fn of_nodes(config: &Config, only: Option<&str>) -> Result<Vec<Engine>> {
    let mut seen = BTreeSet::new();
    let wanted = config.node.iter().filter(|node| {
        let is_wanted = only.is_none_or(|only| node.name == only);
        is_wanted
            && match node.driver.as_str() {
                "docker" => true,
                "incus" => node
                    .cluster
                    .as_ref()
                    .is_none_or(|cluster| seen.insert(cluster)),
                _ => false,
            }
    });
    wanted
        .map(|node| {
            let endpoint = of_node(node).with_context(|| format!("node {}", node.name))?;
            // The default is that of the driver.
            let project = node.settings.get("project").and_then(|name| name.as_str());
            let project = Some(project.unwrap_or("wharf")).filter(|_| node.driver == "incus");
            Ok(Engine {
                name: node.name.clone(),
                client: HttpClient::new(endpoint),
                project: project.map(str::to_owned),
            })
        })
        .collect()
}

fn of_node(node: &NodeConfig) -> Result<Endpoint> {
    let Some(address) = node.endpoint.strip_prefix("https://") else {
        return Endpoint::parse(&node.endpoint);
    };
    let wharf_engine::EngineEndpoint::Https { host, .. } =
        wharf_engine::EngineEndpoint::parse(&node.endpoint)?
    else {
        bail!("endpoint: {:?}", node.endpoint);
    };
    let NodeTls {
        server_name,
        config,
    } = node_tls::read(node, &host)
        .map_err(|(setting, error)| Error::new(error).context(setting))?;
    Ok(Endpoint::Tls {
        address: address.trim_end_matches('/').to_owned(),
        server_name,
        config,
    })
}

fn each<'a>(engines: &'a [Engine], mut act: impl FnMut(&'a Engine) -> Result<()>) -> Result<()> {
    for engine in engines {
        eprintln!("{}:", engine.name);
        act(engine).with_context(|| engine.name.clone())?;
    }
    Ok(())
}

/// An image on a node after a build.
#[derive(Serialize)]
struct Built<'a> {
    node: &'a str,
    #[serde(flatten)]
    image: MadeImage,
}

fn build(
    mut recipes: Recipes,
    engines: &[Engine],
    names: &[String],
    builder: Option<HttpClient>,
    output: OutputFormat,
) -> Result<()> {
    let mut of_docker = engines.iter().filter(|engine| engine.project.is_none());
    let builder = builder.or_else(|| of_docker.next().map(|engine| engine.client.clone()));
    let mut rows = Vec::new();
    each(engines, |engine| {
        let made = engine.ensure(&recipes, names, builder.as_ref())?;
        // The other nodes get the sources that the first one got.
        recipes.renews = false;
        let node = &engine.name;
        rows.extend(made.into_iter().map(|image| Built { node, image }));
        Ok(())
    })?;
    if output == OutputFormat::Json {
        return json(&rows);
    }
    Ok(())
}

/// An image on a node.
#[derive(Serialize)]
struct Row<'a> {
    node: &'a str,
    image: &'a str,
    state: &'static str,
    /// Whether it has an SSH server; none of a missing image, and of one of virtual machines.
    has_ssh: Option<bool>,
    /// The content, in words for users; none if the image does not tell it.
    content: Option<String>,
    /// The registry's image below it with its digest, or `packages`; none if the image does not tell it.
    source: Option<String>,
}

fn show(recipes: &Recipes, engines: &[Engine], output: OutputFormat) -> Result<()> {
    let names = recipes.names()?;
    let mut rows = Vec::new();
    for engine in engines {
        for image in &names {
            let found = engine.find(recipes, image);
            let found = found.with_context(|| engine.name.clone())?;
            let state = match found.state {
                ImageState::Missing => "missing",
                ImageState::Other => "present, made from another recipe",
                ImageState::Current => "current",
            };
            let (node, has_ssh) = (&engine.name, found.has_ssh);
            rows.push(Row {
                node,
                image,
                state,
                has_ssh,
                content: found.content,
                source: found.source,
            });
        }
    }
    if output == OutputFormat::Json {
        return json(&rows);
    }
    let columns = ["NODE", "IMAGE", "STATE", "SSH", "CONTENT", "SOURCE"].map(Text);
    let cells = rows.iter().map(|row| {
        let ssh = row
            .has_ssh
            .map_or("-", |has| if has { "yes" } else { "no" });
        let [content, source] =
            [&row.content, &row.source].map(|text| text.as_deref().unwrap_or("-"));
        [row.node, row.image, row.state, ssh, content, source].map(str::to_owned)
    });
    table(columns, cells)
}

/// The recipes of an installed package or an unpacked archive: `bin/wharf` and `share/wharf/images`
/// have one parent.
fn shipped() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    let parent = program.parent().and_then(|directory| directory.parent());
    parent.unwrap_or("/usr".as_ref()).join("share/wharf/images")
}

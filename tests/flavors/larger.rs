//! The flavors that take long to make: what they promise is there and works.

use crate::context::Context;
use crate::page::Page;
use crate::{jupyterlab, marimo};
use anyhow::{Result, ensure};
use serde_json::json;
use wharf_tests::{KeyPair, Login, small};

/// Trains on each of the libraries a little.
const DATA_SCIENCE: &str = "
import matplotlib, numpy, pandas, polars, scipy.stats, sklearn.linear_model, torch
x = numpy.arange(20.0).reshape(-1, 1)
y = 3 * x.ravel() + 1
line = sklearn.linear_model.LinearRegression().fit(x, y)
tensor = torch.tensor(x) @ torch.tensor([[3.0]], dtype=torch.float64) + 1
assert abs(line.coef_[0] - 3) < 1e-6 and torch.allclose(tensor.ravel(), torch.tensor(y))
frame = polars.DataFrame({\"x\": x.ravel(), \"y\": y})
assert frame.select(polars.col(\"y\").sum()).item() == pandas.Series(y).sum()
assert scipy.stats.pearsonr(x.ravel(), y)[0] > 0.999
matplotlib.use(\"agg\")
import matplotlib.pyplot
matplotlib.pyplot.plot(x, y)
matplotlib.pyplot.savefig(\"/tmp/line.png\")
print(\"trained\")
";
const GENOMICS: &str = "set -e; cd /tmp; printf '>chr\\nACGTACGTAC\\n' > a.fa; samtools faidx a.fa chr:2-4 | tail -n 1; \
     samtools --version | head -n 1; bcftools --version | head -n 1; STAR --version; \
     plink1.9 --version; plink2 --version; picard-tools ViewSam --version 2>&1 | tail -n 1; \
     command -v nextflow bwa minimap2 bedtools freebayes >/dev/null; java -version 2>&1 | head -n 1; \
     Rscript -e 'suppressMessages({library(DESeq2); library(VariantAnnotation)}); cat(\"bioconductor\")'";
const R_GENOMICS: &str = "suppressMessages({library(GenomicRanges); library(DESeq2)}); \
     stopifnot(width(GRanges(\"chr1\", IRanges(1, 10))) == 10); cat(6 * 7 * 1000 + 1)";
const R_GEOSPATIAL: &str = "suppressMessages({library(sf); library(terra); library(stars)}); \
     stopifnot(abs(as.numeric(st_distance(st_point(c(0, 0)), st_point(c(3, 4)))) - 5) < 1e-9); \
     stopifnot(ncell(rast(nrows = 4, ncols = 5)) == 20); cat(6 * 7 * 1000 + 1)";

pub fn datascience(context: &Context) -> Result<()> {
    let script = format!("python3 - <<'END'\n{DATA_SCIENCE}END");
    let said = over_ssh(context, "datascience", &script)?;
    ensure!(said == "trained", "{said}");
    Ok(())
}

pub fn genomics(context: &Context) -> Result<()> {
    let said = over_ssh(context, "genomics", GENOMICS)?;
    println!("{said}");
    ensure!(said.starts_with("CGT\n") && said.ends_with("bioconductor"));
    Ok(())
}

/// By key and by password, as for every flavor with SSH; what the script says.
fn over_ssh(context: &Context, flavor: &str, script: &str) -> Result<String> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let pair = KeyPair::new()?;
    let mut body = small("container");
    body["flavor"] = json!(flavor);
    body["name"] = json!(flavor);
    body["mem_gib"] = json!(2);
    body["public_key"] = json!(pair.public);
    api.create(&body)?.expect(201)?;
    let running = api.wait_for(flavor, "running")?;
    ensure!(running["webapp_url"].is_null());
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    ensure!(Login::Password(password).output(&running, "echo in")? == "in");
    let said = Login::Key(&pair).output(&running, script)?;
    api.delete(flavor)?.expect(204)?;
    server.finish()?;
    Ok(said)
}

pub fn datasciencemarimo(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let page = Page::create(&api, "datasciencemarimo", &json!({}))?;
    page.has_no_ssh(context)?;
    marimo::in_the_browser(&page, "datasciencemarimo")?;
    let script = format!("python3 - <<'END'\n{DATA_SCIENCE}END");
    ensure!(context.inside_as_user(&page.instance, &script)? == "trained");
    api.delete("page-datasciencemarimo")?.expect(204)?;
    server.finish()
}

pub fn rserver(context: &Context) -> Result<()> {
    r(
        context,
        "rserver",
        R_GENOMICS,
        "samtools --version && plink2 --version",
    )
}

pub fn rgeospatial(context: &Context) -> Result<()> {
    r(context, "rgeospatial", R_GEOSPATIAL, "gdalinfo --version")
}

fn r(context: &Context, flavor: &str, code: &str, tools: &str) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let page = Page::create(&api, flavor, &json!({}))?;
    page.has_no_ssh(context)?;
    page.keeps_its_password(context)?;
    context.inside_as_user(&page.instance, tools)?;
    jupyterlab::in_the_browser(&page, flavor, "R", code)?;
    api.delete(&format!("page-{flavor}"))?.expect(204)?;
    server.finish()
}

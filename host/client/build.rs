//! Generates the methods of the client, the types of bodies, and the OpenAPI document as JSON.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

const DOCUMENT: &str = "../../schemas/openapi.yaml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={DOCUMENT}");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let document = fs::read_to_string(DOCUMENT)?;
    for (name, text) in wharf_client_generator::generate(&document)? {
        fs::write(out.join(name), text)?;
    }
    Ok(())
}

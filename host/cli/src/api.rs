//! `wharf api`.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::json;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;
use std::io::{Read, stdin};
use wharf_client::{Error as ClientError, Method};

/// Send a request to the REST interface and print the JSON of its response
#[derive(Args)]
pub struct Api {
    /// HTTP method, such as GET
    #[arg(value_parser = method)]
    method: Method,
    /// Path, such as /api/instance/?limit=10
    path: String,
    /// JSON of the body; @FILE reads a file, and @- stdin
    #[arg(long, value_name = "JSON")]
    data: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

fn method(text: &str) -> Result<Method, &'static str> {
    let method = Method::from_bytes(text.to_uppercase().as_bytes());
    method.map_err(|_| "must be an HTTP method, such as GET or POST")
}

impl Api {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let mut request = client.request::<Value>(self.method, &self.path);
        if let Some(data) = &self.data {
            request = request.json(&body(data)?);
        }
        match request.send().await {
            Ok(reply) if reply.value().is_null() => Ok(()),
            Ok(reply) => json(reply.value()),
            Err(ClientError::Refused(refusal)) => {
                if !refusal.body.is_null() {
                    json(&refusal.body)?;
                }
                Err(ClientError::Refused(refusal).into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn body(data: &str) -> Result<Value> {
    let text = match data.strip_prefix('@') {
        None => data.to_owned(),
        Some("-") => {
            let mut text = String::new();
            stdin()
                .read_to_string(&mut text)
                .context("cannot read stdin")?;
            text
        }
        Some(file) => {
            std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?
        }
    };
    let wrong = |error| Failure::Usage(format!("--data is not JSON: {error}"));
    Ok(serde_json::from_str(&text).map_err(wrong)?)
}

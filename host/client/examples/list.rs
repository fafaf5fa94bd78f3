//! Lists the instances of a user: `WHARF_URL=… WHARF_API_KEY=… cargo run --example list`.

use std::env::var;
use wharf_client::{Client, Error, Secret};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::new(
        &var("WHARF_URL")?,
        Some(Secret::from(var("WHARF_API_KEY")?)),
    )?;
    match client.list_instances(None, None).send().await {
        Ok(list) => {
            for instance in list.body()?.iter() {
                println!("{}\t{}", instance.name, instance.state);
            }
            Ok(())
        }
        Err(Error::Refused(refusal)) => {
            let id = refusal.request_id.as_deref().unwrap_or("-");
            eprintln!("refused with {} (request {id}): {refusal}", refusal.status);
            Err(refusal.to_string().into())
        }
        Err(error) => Err(error.into()),
    }
}

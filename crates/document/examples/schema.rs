//! Prints the JSON Schema of the resolved run:
//! `cargo run -p bakeoff-document --features schema --example schema > crates/document/schema.json`.

use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    std::io::stdout().write_all(bakeoff_document::schema::text()?.as_bytes())?;
    Ok(())
}

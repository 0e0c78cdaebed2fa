//! Reads a capture and prints the report as JSON: `trace FILE [OPTIONS]`, `-` for standard input.

use std::fs::File;
use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let name = words.next().ok_or("expected a file")?;
    let options = words
        .next()
        .map_or(Ok(bakeoff_trace::options::Options::default()), |json| serde_json::from_str(&json))?;
    let source: Box<dyn Read + Send> =
        if name == "-" { Box::new(std::io::stdin()) } else { Box::new(File::open(&name)?) };
    let report = bakeoff_trace::trace(&name, source, &options, &mut || false)?;
    let mut out = std::io::BufWriter::new(std::io::stdout());
    serde_json::to_writer_pretty(&mut out, &report)?;
    Ok(out.flush()?)
}

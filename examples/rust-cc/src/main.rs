//! A duel of `scalable` against CUBIC. The document is what `bakeoff show RUN` prints, with another name in `cc`; a path
//! to another one may be given.

use std::error::Error;

use bakeoff_sim::Registry;

fn main() -> Result<(), Box<dyn Error>> {
    let run = match std::env::args().nth(1) {
        Some(path) => std::fs::read_to_string(path)?,
        None => include_str!("../duel.json").to_owned(),
    };
    let mut registry = Registry::default();
    rust_cc::register(&mut registry);
    let outcome = bakeoff_sim::simulate_with(&run, &registry)?;
    let seconds = outcome.series.time.last().copied().unwrap_or_default();
    for (name, flow) in outcome.counters()["flows"].as_object().into_iter().flatten() {
        let bytes = flow["received_bytes"].as_f64().unwrap_or_default();
        println!("{name}: {:.1} Mbit/s, {} retransmissions", bytes * 8e-6 / seconds, flow["retransmits"]);
    }
    Ok(())
}

//! No document, valid or nearly so, makes the simulator panic, hang, lose packets or grow without bound.
//!
//! Drawn is all that a document can say: every registered congestion control and queue discipline, media, tunnels, changes, probes, captures, mangling,
//! with usual numbers and those at the edges; half of the documents are spoiled then. `make fuzz` draws 20,000; the document that is being run stands in
//! `fuzz_document.json` of cargo's folder for tests (`target/tmp`), in case that the process is killed. What once failed is kept in `tests/documents/`.

use std::cell::Cell;
use std::path::Path;

use crate::common::choices::Choices;
use crate::common::documents::{document, spoil};
use bakeoff_sim::{Budget, Registry, SimError, simulate_within};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;

/// A tenth of a second of work.
const BUDGET: Budget = Budget { events: 200_000, bytes: 50_000_000, exact: false };

fn run(doc: &Value) -> Result<(), String> {
    match simulate_within(&doc.to_string(), &Registry::default(), BUDGET) {
        Ok(_) => Ok(()),
        Err(SimError::Refused(refused)) => Err(refused.0),
        Err(broken) => panic!("{broken}"),
    }
}

#[test]
fn no_document_does_harm() {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz_document.json");
    let (ran, valid) = (Cell::new(0_u32), Cell::new(0_u32));
    let row = prop::collection::vec(any::<u32>(), 0..400);
    let mut runner = TestRunner::new(ProptestConfig::default());
    let result = runner.run(&(row, any::<bool>()), |(row, spoiled)| {
        let mut choices = Choices::new(&row);
        let mut doc = document(&mut choices);
        if spoiled {
            for _ in 0..=choices.below(3) {
                spoil(&mut choices, &mut doc);
            }
        }
        std::fs::write(&kept, doc.to_string()).expect("cargo's folder for tests can be written");
        let answer = run(&doc);
        if let Err(message) = &answer {
            prop_assert!(!message.is_empty());
        }
        if !spoiled {
            valid.set(valid.get() + 1);
            ran.set(ran.get() + u32::from(answer.is_ok()));
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}\n{}", std::fs::read_to_string(&kept).unwrap_or_default()));
    eprintln!("{} of {} valid documents ran", ran.get(), valid.get());
    // Else nothing was tried: the words of qdiscs often contradict each other.
    assert!(ran.get() * 10 > valid.get(), "{} of {} valid documents ran", ran.get(), valid.get());
}

//! Every test file of this folder is a module of this one program, so that the simulator is linked to them once.
//!
//! `cargo test -p bakeoff-sim --test all NAME` runs the tests of `NAME.rs`.

mod any_path;
mod bbr_runs;
mod captures;
mod cc_hooks;
mod cc_words;
mod common;
mod conservation;
mod counters;
mod determinism;
mod documents;
mod fast_path;
mod fuzz_documents;
mod machines;
mod modules;
mod offloads;
mod sources;
mod stimuli;
mod tunnels;
mod whole_runs;
mod window_model;

/// A file that no line above names would never be run.
#[test]
fn every_file_of_the_folder_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let this = include_str!("all.rs");
    for entry in std::fs::read_dir(folder).expect("the folder of this file") {
        let path = entry.expect("a folder that can be read").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.extension().is_some_and(|e| e == "rs") && name != "all" {
            assert!(this.contains(&format!("\nmod {name};\n")), "tests/all.rs lacks `mod {name};`");
        }
    }
}

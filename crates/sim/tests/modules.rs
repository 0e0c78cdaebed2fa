//! The modules of the simulator have one order: a file imports only from its own module and those before it.
//!
//! Read are the `use` lines and every `crate::` path in the code, comments excepted. Tests at the bottom of a file
//! may look everywhere: they are the file's readers, not its parts.

use std::path::{Path, PathBuf};

/// From what knows nothing to what knows all.
const ORDER: [&str; 10] =
    ["base", "packet", "qdisc", "cc", "tcp", "network", "endpoint", "record", "sim", "build"];

fn place(module: &str) -> Option<usize> {
    ORDER.iter().position(|name| *name == module)
}

/// What stands against the order in the text of one file of a module.
fn against(module: &str, text: &str) -> Vec<String> {
    let own = place(module).expect("a folder of the crate is a module");
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for path in line.split("crate::").skip(1) {
            let name: String = path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if place(&name).is_none_or(|other| other > own) {
                found.push(format!("{}: {}", number + 1, line.trim()));
            }
        }
        if module != "sim" && line.starts_with("impl Sim ") {
            found.push(format!("{}: {}: only sim/ adds to Sim", number + 1, line.trim()));
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the sources lie beside the tests") {
        let path = entry.expect("a folder that can be read").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn a_module_imports_only_from_modules_before_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for path in files(&root) {
        let relative = path.strip_prefix(&root).expect("below the sources");
        let Some(folder) = relative.parent().and_then(|p| p.components().next()) else { continue };
        let module = folder.as_os_str().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a source is text");
        found.extend(against(&module, &text).iter().map(|line| format!("src/{}:{line}", relative.display())));
    }
    assert!(found.is_empty(), "against the order {}:\n{}", ORDER.join(" > "), found.join("\n"));
}

#[test]
fn a_line_against_the_order_is_named() {
    let text = "//! See [`crate::sim`].\nuse crate::base::units::Time;\nuse crate::tcp::ecn;\n";
    assert_eq!(against("cc", text), ["3: use crate::tcp::ecn;"]);
    assert!(against("tcp", text).is_empty());
    assert_eq!(against("base", "fn f(p: &crate::packet::Packet) {}\n").len(), 1);
    assert_eq!(against("network", "impl Sim {\n").len(), 1);
    assert!(against("cc", "#[cfg(test)]\nmod tests {\n    use crate::tcp::ecn;\n}\n").is_empty());
}

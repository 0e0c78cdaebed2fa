//! The kernel modules of this repository in user space, for tests: `kernel/modules/harness` drives one connection of a module, line by line.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A harness, compiled; its program goes with it.
pub struct Harness {
    program: PathBuf,
}

impl Harness {
    /// Compiles these sources, by their names from `kernel/modules/harness`, against the few declarations there.
    pub fn compile(name: &str, sources: &[&str]) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/modules/harness");
        let program = std::env::temp_dir().join(format!("bakeoff-{name}-harness-{}", std::process::id()));
        let compiled = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-sign-compare", "-Werror"])
            .args(["-fsanitize=undefined", "-fno-sanitize-recover=undefined"])
            .arg("-I")
            .arg(folder.join("include"))
            .args(sources.iter().map(|source| folder.join(source)))
            .arg("-o")
            .arg(&program)
            .status()
            .expect("the harness needs a C compiler, as cargo does");
        assert!(compiled.success(), "the harness of {name} does not compile");
        Harness { program }
    }

    /// What the module printed after each line.
    pub fn drive(&self, lines: &str) -> Vec<String> {
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the harness was just compiled");
        let mut input = child.stdin.take().expect("it is a pipe");
        let lines = lines.to_owned();
        let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
        let output = child.wait_with_output().expect("the harness runs");
        writer.join().expect("no panic").expect("the harness reads all");
        assert!(output.status.success(), "the harness failed: {}", output.status);
        String::from_utf8(output.stdout).expect("ASCII").lines().map(str::to_owned).collect()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        // Where it stays it is a few kilobytes in the folder for such things.
        let _ = std::fs::remove_file(&self.program);
    }
}

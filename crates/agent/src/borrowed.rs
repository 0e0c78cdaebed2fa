//! What starts a program. This one is meant by its name, wherever its file lies and whatever that is called. Programs that
//! `kernel/fetch-programs` has unpacked stand behind scripts, which start the dynamic loader; without the shell that reads them a command
//! takes a third less in a virtual-time kernel.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;

/// Bytes of such a script at most.
const MOST: u64 = 1 << 12;

/// The word for this program, of which the file may have another name.
const THIS: &str = env!("CARGO_PKG_NAME");

/// What starts a program: this one's own file, the loader behind a script, or the program itself.
pub fn command(program: &str) -> Command {
    if program == THIS {
        return Command::new("/proc/self/exe");
    }
    let behind = script(program).and_then(|text| {
        let [tables, loader, libraries, behind] = words(&text)?;
        let name = Path::new(program).file_name()?;
        let mut command = Command::new(loader);
        command
            .args(["--library-path", libraries, "--argv0"])
            .arg(name)
            .arg(behind)
            .env("TC_LIB_DIR", tables);
        Some(command)
    });
    behind.unwrap_or_else(|| Command::new(program))
}

fn script(program: &str) -> Option<String> {
    let mut text = String::new();
    // A binary is no UTF-8.
    File::open(program).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// tc's tables, loader, libraries and program of a script as `wrapper` of `kernel/fetch-programs` writes it.
fn words(script: &str) -> Option<[&str; 4]> {
    let script = script.strip_prefix("#!/bin/sh\nTC_LIB_DIR='")?.strip_suffix("' \"$@\"\n")?;
    let (tables, script) = script.split_once("'; export TC_LIB_DIR\nexec '")?;
    let (loader, script) = script.split_once("' --library-path '")?;
    let (libraries, program) = script.split_once("' --argv0 \"${0##*/}\" '")?;
    let found = [tables, loader, libraries, program];
    found.iter().all(|word| !word.contains(['\'', '\n'])).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "#!/bin/sh\nTC_LIB_DIR='/t'; export TC_LIB_DIR\nexec '/ld.so' --library-path '/l:/m' --argv0 \"${0##*/}\" '/sbin/tc' \"$@\"\n";

    #[test]
    fn a_script_tells_what_it_starts() {
        assert_eq!(words(SCRIPT), Some(["/t", "/ld.so", "/l:/m", "/sbin/tc"]));
    }

    #[test]
    fn any_other_script_is_left_to_its_shell() {
        for (from, to) in [
            ("exec", "echo x\nexec"),
            ("/sbin", "/s'x'bin"),
            ("\"$@\"", "-j \"$@\""),
            ("/bin/sh", "/bin/bash"),
        ] {
            assert_eq!(words(&SCRIPT.replace(from, to)), None, "{to}");
        }
    }

    #[test]
    fn this_program_is_found_under_any_file_name() {
        assert_eq!(command("bakeoff-agent").get_program(), "/proc/self/exe");
        assert_eq!(command("/x/bakeoff-agent").get_program(), "/x/bakeoff-agent");
    }

    /// The form that fetch-programs writes today.
    #[test]
    fn fetch_programs_writes_such_scripts() {
        let source = include_str!("../../../kernel/fetch-programs");
        for line in [
            r##""#!/bin/sh\n""##,
            r#"f"TC_LIB_DIR={quoted[3]}; export TC_LIB_DIR\n""#,
            r#"f'exec {quoted[0]} --library-path {quoted[1]} --argv0 "${{0##*/}}" {quoted[2]} "$@"\n'"#,
        ] {
            assert!(source.contains(line), "{line}");
        }
    }

    #[test]
    fn what_is_no_script_is_started_itself() {
        assert_eq!(command("/proc/self/exe").get_program(), "/proc/self/exe");
        assert_eq!(command("tc").get_program(), "tc");
    }
}

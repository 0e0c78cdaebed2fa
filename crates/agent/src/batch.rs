//! Commands of `ip` and `tc` that one process can do: `-batch -` takes them line by line. In a virtual-time kernel the start of a
//! process costs more than what it does.

use std::path::Path;

use crate::command::{Spec, is_plain, told};
use crate::error::Error;

const OBJECTS: [&str; 7] = ["addr", "class", "filter", "link", "neigh", "qdisc", "route"];
/// What succeeds in silence.
const VERBS: [&str; 4] = ["add", "change", "replace", "set"];

/// How many of the first of these commands one process can do: those of one program and namespace that print nothing, or the
/// first alone.
pub fn length(commands: &[Spec]) -> usize {
    let Some(first) = commands.first() else { return 0 };
    let alike = |command: &&Spec| {
        is_quiet(command) && command.netns == first.netns && command.argv[0] == first.argv[0]
    };
    commands.iter().take_while(alike).count().max(1)
}

fn is_quiet(command: &Spec) -> bool {
    let program = Path::new(&command.argv[0]).file_name().and_then(|name| name.to_str());
    matches!(program, Some("ip" | "tc"))
        && command.stdin.is_none()
        && matches!(&command.argv[1..], [object, verb, ..]
            if OBJECTS.contains(&object.as_str()) && VERBS.contains(&verb.as_str()))
        && command.argv.iter().all(|word| is_plain(word))
}

/// Does commands that [`length`] has put together; returns what they said after all. A failure has how many were done, and the error
/// of the one that failed.
pub fn run(commands: &[Spec]) -> Result<String, (usize, Error)> {
    let [first, ..] = commands else { return Ok(String::new()) };
    let text: String = commands.iter().map(|command| command.argv[1..].join(" ") + "\n").collect();
    let argv = [first.argv[0].clone(), "-batch".into(), "-".into()];
    let (status, output) =
        Spec { argv: &argv, stdin: Some(&text), ..*first }.outcome().map_err(|error| (0, error))?;
    if status.success() {
        return Ok(output);
    }
    let (done, said) = failure(&output);
    let line = commands.get(done).unwrap_or(first).line();
    Err((done, Error::Failed(format!("{line}: {}: {said}", told(status)))))
}

/// How many lines were done before the one that failed, and what was said of it.
fn failure(output: &str) -> (usize, String) {
    let number = |line: &str| line.strip_prefix("Command failed -:")?.trim().parse().ok();
    let done = output.lines().find_map(number).map_or(0, |number: usize| number.saturating_sub(1));
    let said: Vec<&str> = output.lines().filter(|line| number(line).is_none()).collect();
    (done, said.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Vec<Vec<String>> {
        lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    fn specs<'a>(argvs: &'a [Vec<String>], netns: Option<&'a str>) -> Vec<Spec<'a>> {
        argvs.iter().map(|argv| Spec { node: "mid", netns, argv, stdin: None }).collect()
    }

    /// Two of ip, then another program.
    #[test]
    fn neighbours_of_one_program_go_together() {
        let lines = [
            "/a/ip link set dev x up",
            "/a/ip addr add 10.0.0.1/24 dev x",
            "/a/tc qdisc add dev x root pfifo",
        ];
        let argvs = of(&lines);
        let commands = specs(&argvs, None);
        assert_eq!((length(&commands), length(&commands[2..]), length(&[])), (2, 1, 0));
    }

    #[test]
    fn another_namespace_or_program_or_what_prints_goes_alone() {
        let up = "ip link set dev x up";
        for other in [
            "tc link set dev x up",
            "ip link show",
            "ip -s link set dev x up",
            "ip netns add y",
            "ip link set dev x alias a;b",
            "ip link",
        ] {
            let argvs = of(&[up, other, up]);
            assert_eq!(length(&specs(&argvs, None)), 1, "{other}");
            assert_eq!(length(&specs(&argvs, None)[1..]), 1, "{other}");
        }
        let argvs = of(&[up, up]);
        let commands = [specs(&argvs[..1], None), specs(&argvs[1..], Some("mid"))].concat();
        assert_eq!(length(&commands), 1);
        let fed = [Spec { stdin: Some("x"), ..commands[0] }, commands[0]];
        assert_eq!(length(&fed), 1);
    }

    #[test]
    fn a_failure_names_its_line() {
        let (done, said) = failure("Error: Qdisc not found.\nCommand failed -:3\n");
        assert_eq!((done, said.as_str()), (2, "Error: Qdisc not found."));
        assert_eq!(failure("no memory"), (0, "no memory".into()));
    }

    /// A stand-in for `ip` that refuses its second line.
    #[test]
    fn the_error_is_that_of_the_command_that_failed() {
        let folder = std::env::temp_dir().join(format!("bakeoff-batch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("made");
        let program = folder.join("ip");
        std::os::unix::fs::symlink("/bin/sh", &program).expect("made");
        let argv =
            |last: &str| [program.to_str().expect("UTF-8"), "link", "set", last].map(str::to_owned).to_vec();
        let argvs = [argv("a"), argv("b")];
        // sh knows no option -batch: it says so, and ends with 2.
        let (done, error) = run(&specs(&argvs, None)).expect_err("refused");
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(done, 0);
        assert!(error.to_string().contains("ip link set a: exit code 2: "), "{error}");
    }
}

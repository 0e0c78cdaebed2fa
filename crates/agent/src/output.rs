//! The text file: rows of `time kind name metric value`, and one last line of JSON behind a `#`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::clock;
use crate::error::{Error, at};

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A source or a sink.
    Flow,
    /// A latency probe.
    Probe,
    /// A queue of the kernel.
    Queue,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Flow => "flow",
            Kind::Probe => "probe",
            Kind::Queue => "queue",
        }
    }
}

/// The file being written.
pub struct Output<W: Write = BufWriter<File>> {
    path: PathBuf,
    to: W,
}

impl Output {
    /// Creates or truncates the file.
    pub fn create(path: &Path) -> Result<Output, Error> {
        let file = File::create(path).map_err(at(format!("output {}", path.display())))?;
        Output::new(path, BufWriter::with_capacity(1 << 16, file))
    }
}

impl<W: Write> Output<W> {
    fn new(path: &Path, to: W) -> Result<Self, Error> {
        let mut output = Output { path: path.into(), to };
        output.line(format_args!("time\tkind\tname\tmetric\tvalue"))?;
        Ok(output)
    }

    /// One sample, taken `time` ns after the epoch.
    pub fn row(&mut self, time: i64, kind: Kind, name: &str, metric: &str, value: f64) -> Result<(), Error> {
        self.line(format_args!("{}\t{}\t{name}\t{metric}\t{value}", clock::seconds(time), kind.name()))
    }

    /// The last line.
    pub fn finish(&mut self, summary: &Value) -> Result<(), Error> {
        self.line(format_args!("#{summary}"))?;
        self.flush()
    }

    /// Hands what is buffered to the kernel.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.to.flush().map_err(at(format!("output {}", self.path.display())))
    }

    fn line(&mut self, text: std::fmt::Arguments) -> Result<(), Error> {
        writeln!(self.to, "{text}").map_err(at(format!("output {}", self.path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_and_the_last_line() {
        let mut output = Output::new(Path::new("o.tsv"), Vec::new()).expect("written");
        output.row(50_000_000, Kind::Flow, "a", "cwnd", 10.0).expect("written");
        output.row(150_000_001, Kind::Queue, "mid>srv", "sojourn", 0.000_125).expect("written");
        output.finish(&json!({"complete": true})).expect("written");
        let text = String::from_utf8(output.to).expect("UTF-8");
        assert_eq!(
            text,
            "time\tkind\tname\tmetric\tvalue\n0.05\tflow\ta\tcwnd\t10\n0.150000001\tqueue\tmid>srv\tsojourn\t0.000125\n#{\"complete\":true}\n"
        );
    }
}

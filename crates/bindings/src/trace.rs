//! Captures.

use std::fs::File;
use std::io::Read;

use bakeoff_trace::error::TraceError;
use bakeoff_trace::options::Options;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Reads the capture at `path` (`-`: standard input) with these options (JSON); the report as JSON.
#[pyfunction]
#[pyo3(signature = (path, options="{}"))]
pub fn trace<'py>(py: Python<'py>, path: &str, options: &str) -> PyResult<Bound<'py, PyBytes>> {
    let options: Options =
        serde_json::from_str(options).map_err(|e| PyValueError::new_err(format!("options: {e}")))?;
    let mut raised = None;
    let outcome = py.detach(|| {
        let (name, source): (&str, Box<dyn Read + Send>) = if path == "-" {
            ("standard input", Box::new(std::io::stdin()))
        } else {
            let file = File::open(path).map_err(|e| TraceError::Refused(format!("{path}: {e}")))?;
            (path, Box::new(file))
        };
        let report = bakeoff_trace::trace(name, source, &options, &mut || {
            raised = Python::attach(signals).err();
            raised.is_some()
        })?;
        Ok::<_, TraceError>(serde_json::to_vec(&report))
    });
    match (raised, outcome) {
        (Some(raised), _) => Err(raised),
        (None, Ok(Ok(json))) => Ok(PyBytes::new(py, &json)),
        (None, Ok(Err(e))) => Err(PyRuntimeError::new_err(e.to_string())),
        (None, Err(e)) => Err(PyValueError::new_err(e.to_string())),
    }
}

/// What a signal's handler raised, such as Ctrl-C's.
fn signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

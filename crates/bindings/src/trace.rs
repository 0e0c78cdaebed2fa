//! Captures.

use std::fs::File;
use std::io::Read;

use bakeoff_trace::error::TraceError;
use bakeoff_trace::options::Options;
use numpy::IntoPyArray;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Reads the capture at `path` (`-`: standard input) with these options (JSON); the report as JSON.
#[pyfunction]
#[pyo3(signature = (path, options="{}"))]
pub fn trace<'py>(py: Python<'py>, path: &str, options: &str) -> PyResult<Bound<'py, PyBytes>> {
    let options: Options =
        serde_json::from_str(options).map_err(|e| PyValueError::new_err(format!("options: {e}")))?;
    let mut raised = None;
    let outcome = py.detach(|| {
        let (name, source) = opened(path)?;
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

/// The TCP segments of the capture at `path` (`-`: standard input), as columns.
#[pyfunction]
pub fn packets<'py>(py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
    let mut raised = None;
    let outcome = py.detach(|| {
        let (name, source) = opened(path)?;
        bakeoff_trace::packets::packets(name, source, &mut || {
            raised = Python::attach(signals).err();
            raised.is_some()
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    let found = outcome.map_err(|e| PyValueError::new_err(e.to_string()))?;
    let ends: Vec<_> = found.ends.iter().map(|(from, to)| (from.to_string(), to.to_string())).collect();
    let dict = PyDict::new(py);
    dict.set_item("ends", ends)?;
    dict.set_item("at_ns", found.at_ns.into_pyarray(py))?;
    dict.set_item("direction", found.direction.into_pyarray(py))?;
    dict.set_item("seq", found.seq.into_pyarray(py))?;
    dict.set_item("ack", found.ack.into_pyarray(py))?;
    dict.set_item("payload", found.payload.into_pyarray(py))?;
    dict.set_item("flags", found.flags.into_pyarray(py))?;
    dict.set_item("ecn", found.ecn.into_pyarray(py))?;
    Ok(dict)
}

/// A capture's name in messages, and its bytes.
fn opened(path: &str) -> Result<(&str, Box<dyn Read + Send>), TraceError> {
    if path == "-" {
        return Ok(("standard input", Box::new(std::io::stdin())));
    }
    let file = File::open(path).map_err(|e| TraceError::Refused(format!("{path}: {e}")))?;
    Ok((path, Box::new(file)))
}

/// What a signal's handler raised, such as Ctrl-C's.
fn signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

//! The thin PyO3 layer: no logic.

use bakeoff_sim::qdisc::{Env, KINDS, Queue, replay};
use bakeoff_sim::{SimError, run};
use numpy::IntoPyArray;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Runs a resolved run (JSON).
#[pyfunction]
fn simulate<'py>(py: Python<'py>, run: &str) -> PyResult<Bound<'py, PyDict>> {
    let outcome = py.detach(|| bakeoff_sim::simulate(run)).map_err(|e| match e {
        SimError::Refused(e) => PyValueError::new_err(e.to_string()),
        SimError::Broken(e) => PyRuntimeError::new_err(e),
    })?;
    let dict = PyDict::new(py);
    dict.set_item("time", outcome.series.time.into_pyarray(py))?;
    dict.set_item("series", outcome.series.series.into_pyarray(py))?;
    dict.set_item("value", outcome.series.value.into_pyarray(py))?;
    dict.set_item("names", outcome.series.names)?;
    dict.set_item("counters", outcome.counters.to_string())?;
    dict.set_item("setup", outcome.setup)?;
    dict.set_item("teardown", outcome.teardown)?;
    let captures = PyDict::new(py);
    for (name, file) in outcome.captures {
        captures.set_item(name, PyBytes::new(py, &file))?;
    }
    dict.set_item("captures", captures)?;
    Ok(dict)
}

/// Builds everything that a resolved run names, without running.
#[pyfunction]
fn check(run: &str) -> PyResult<String> {
    bakeoff_sim::check(run).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Parses a qdisc line; the configuration in effect.
#[pyfunction]
fn check_qdisc(line: &str) -> PyResult<String> {
    Queue::build(&run::Qdisc::leaf(line), &Env::default())
        .map(|q| q.show())
        .map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Builds a tree of qdiscs (JSON, as in a resolved run) on a device of a kernel with this timer frequency; the root's
/// configuration in effect, and its classes.
#[pyfunction]
fn show_qdisc(tree: &str, hz: u64) -> PyResult<Vec<String>> {
    let refused = |e: &dyn std::fmt::Display| PyValueError::new_err(e.to_string());
    let spec: run::Qdisc = serde_json::from_str(tree).map_err(|e| refused(&e))?;
    let queue = Queue::build(&spec, &Env { hz, ..Env::default() }).map_err(|e| refused(&e))?;
    Ok([vec![queue.show()], queue.show_classes()].concat())
}

/// The qdiscs that the simulator models.
#[pyfunction]
fn qdiscs() -> Vec<&'static str> {
    KINDS.to_vec()
}

/// Replays arrivals through a queue; both documents are JSON ([`replay::Replay`], [`replay::Replayed`]).
#[pyfunction]
fn qdisc_replay(py: Python<'_>, document: &str) -> PyResult<String> {
    let input: replay::Replay =
        serde_json::from_str(document).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let replayed = py.detach(|| replay::replay(&input)).map_err(PyValueError::new_err)?;
    serde_json::to_string(&replayed).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// The congestion controls that the simulator models.
#[pyfunction]
fn congestion_controls() -> Vec<&'static str> {
    bakeoff_sim::cc::NAMES.to_vec()
}

/// Runs a packetdrill script; the report as JSON.
#[pyfunction]
fn packetdrill(py: Python<'_>, script: &str) -> PyResult<String> {
    let report =
        py.detach(|| bakeoff_packetdrill::run(script)).map_err(|e| PyValueError::new_err(e.to_string()))?;
    serde_json::to_string(&report).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// `bakeoff._sim`
#[pymodule]
fn _sim(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(check_qdisc, module)?)?;
    module.add_function(wrap_pyfunction!(show_qdisc, module)?)?;
    module.add_function(wrap_pyfunction!(qdiscs, module)?)?;
    module.add_function(wrap_pyfunction!(qdisc_replay, module)?)?;
    module.add_function(wrap_pyfunction!(congestion_controls, module)?)?;
    module.add_function(wrap_pyfunction!(packetdrill, module)?)?;
    Ok(())
}

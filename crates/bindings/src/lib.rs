//! The thin PyO3 layer: no logic.
//!
//! Without the feature `module` it is a library: `bakeoff with` builds an extension of it and of a crate that has
//! congestion controls.

mod cc;
mod sock;
mod trace;

use bakeoff_document::qdisc::kinds;
use bakeoff_document::run;
use bakeoff_sim::qdisc::{Env, Queue, replay};
use bakeoff_sim::record::series::{Name, Series};
use bakeoff_sim::{Budget, Registry, SimError};
use cc::Failure;
use numpy::IntoPyArray;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

create_exception!(
    _sim,
    HookError,
    PyException,
    "A congestion control in Python raised: the place; `__cause__` is what was raised."
);

/// Where an exception comes from that a signal handler raised.
const SIGNAL: &str = "a signal handler";

/// Runs a resolved run (JSON). What a signal handler raises meanwhile ends it.
#[pyfunction]
#[pyo3(signature = (run, modules=None, *, exact=false))]
fn simulate<'py>(
    py: Python<'py>,
    run: &str,
    modules: Option<&Bound<'py, PyDict>>,
    exact: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let failure = Failure::default();
    let registry = cc::registry(modules, &failure)?;
    let mut budget = Budget::from_env().map_err(|e| PyValueError::new_err(e.to_string()))?;
    budget.exact |= exact;
    let noted = failure.clone();
    // The thread has no interpreter while it simulates: a handler of Python runs only if it is asked to.
    let interrupted = move || {
        let asked = Python::attach(|py| {
            let raised = py.check_signals().err()?;
            cc::lock(&noted).get_or_insert((String::from(SIGNAL), raised));
            Some(())
        });
        asked.is_some()
    };
    let outcome = py
        .detach(|| bakeoff_sim::simulate_until(run, &registry, budget, interrupted))
        .map_err(|e| hook_error(py, &failure).unwrap_or_else(|| error(e)))?;
    let dict = PyDict::new(py);
    set_series(&dict, outcome.series)?;
    dict.set_item("counters", outcome.counters)?;
    dict.set_item("setup", outcome.setup)?;
    dict.set_item("teardown", outcome.teardown)?;
    let captures = PyDict::new(py);
    for (name, file) in outcome.captures {
        captures.set_item(name, PyBytes::new(py, &file))?;
    }
    dict.set_item("captures", captures)?;
    let trace = outcome.trace.map(|series| set_series(&PyDict::new(py), series)).transpose()?;
    dict.set_item("trace", trace)?;
    Ok(dict)
}

fn set_series<'py>(dict: &Bound<'py, PyDict>, series: Series) -> PyResult<Bound<'py, PyDict>> {
    let py = dict.py();
    dict.set_item("time", series.time.into_pyarray(py))?;
    dict.set_item("series", series.series.into_pyarray(py))?;
    dict.set_item("value", series.value.into_pyarray(py))?;
    dict.set_item("names", names(py, &series.names))?;
    Ok(dict.clone())
}

/// Kind, name and metric of a series.
type Words<'py> = (Bound<'py, PyString>, Bound<'py, PyString>, Bound<'py, PyString>);

/// Those of each series. Thousands of flows have a dozen series each: of equal texts there is one.
fn names<'py>(py: Python<'py>, names: &[Name]) -> Vec<Words<'py>> {
    let mut all: Vec<Words<'py>> = Vec::with_capacity(names.len());
    for (i, Name { kind, name, metric }) in names.iter().enumerate() {
        let known = i.checked_sub(1).filter(|before| names[*before].name == *name);
        let text = known.map_or_else(|| PyString::new(py, name), |before| all[before].1.clone());
        all.push((PyString::intern(py, kind), text, PyString::intern(py, metric)));
    }
    all
}

fn error(error: SimError) -> PyErr {
    match error {
        SimError::Refused(e) => PyValueError::new_err(e.to_string()),
        SimError::Failed(e) | SimError::Broken(e) => PyRuntimeError::new_err(e),
    }
}

/// What a module raised, if one did; Ctrl-C, which Python raises inside the hook, as it is.
fn hook_error(py: Python<'_>, failure: &Failure) -> Option<PyErr> {
    let (place, cause) = cc::lock(failure).take()?;
    if place == SIGNAL || cause.is_instance_of::<PyKeyboardInterrupt>(py) {
        return Some(cause);
    }
    let error = HookError::new_err(place);
    error.set_cause(py, Some(cause));
    Some(error)
}

/// Builds everything that a resolved run names, without running.
#[pyfunction]
#[pyo3(signature = (run, modules=None))]
fn check(py: Python<'_>, run: &str, modules: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
    let failure = Failure::default();
    let registry = cc::registry(modules, &failure)?;
    bakeoff_sim::check_with(run, &registry)
        .map_err(|e| hook_error(py, &failure).unwrap_or_else(|| PyValueError::new_err(e.to_string())))
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
    bakeoff_sim::qdisc::NAMES.to_vec()
}

/// What is known of each kind of qdisc ([`kinds::Kind`]).
#[pyfunction]
fn qdisc_kinds(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    kinds::KINDS
        .iter()
        .map(|kind| {
            let dict = PyDict::new(py);
            dict.set_item("name", kind.name)?;
            dict.set_item("least_words", kind.least_words)?;
            dict.set_item("rate_word", kind.rate_word)?;
            dict.set_item("classful", kind.classful)?;
            dict.set_item("alone", kind.alone)?;
            dict.set_item("limit_in_bytes", kind.limit_in_bytes)?;
            dict.set_item("module", kind.module)?;
            dict.set_item("simulated_as", kind.simulated_as)?;
            dict.set_item("tried", kind.tried)?;
            dict.set_item("order", kind.order)?;
            Ok(dict)
        })
        .collect()
}

/// Replays arrivals through a queue; both documents are JSON ([`replay::Replay`], [`replay::Replayed`]).
#[pyfunction]
fn qdisc_replay(py: Python<'_>, document: &str) -> PyResult<String> {
    let input: replay::Replay =
        serde_json::from_str(document).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let replayed = py.detach(|| replay::replay(&input)).map_err(PyValueError::new_err)?;
    serde_json::to_string(&replayed).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// The congestion controls that the simulator models, and those of a crate.
#[pyfunction]
fn congestion_controls() -> Vec<String> {
    let known = bakeoff_sim::cc::NAMES.iter().copied();
    let own = cc::registered();
    let added = own.names().filter(|name| !bakeoff_sim::cc::NAMES.contains(name));
    known.chain(added).map(str::to_owned).collect()
}

/// The parts that can stand in the place of a congestion control's own.
#[pyfunction]
fn congestion_control_parts() -> Vec<&'static str> {
    bakeoff_document::cc::PARTS.to_vec()
}

/// Runs a packetdrill script; the report as JSON.
#[pyfunction]
fn packetdrill(py: Python<'_>, script: &str) -> PyResult<String> {
    let report =
        py.detach(|| bakeoff_packetdrill::run(script)).map_err(|e| PyValueError::new_err(e.to_string()))?;
    serde_json::to_string(&report).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// `bakeoff._sim`
#[cfg(feature = "module")]
#[pymodule]
fn _sim(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fill(module, |_| {})
}

/// Puts into `module` what `bakeoff._sim` has; `register` makes congestion controls known besides the simulator's.
///
/// # Errors
/// What Python raises.
pub fn fill(module: &Bound<'_, PyModule>, register: fn(&mut Registry)) -> PyResult<()> {
    cc::REGISTER.get_or_init(|| register);
    module.add("HookError", module.py().get_type::<HookError>())?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(check_qdisc, module)?)?;
    module.add_function(wrap_pyfunction!(show_qdisc, module)?)?;
    module.add_function(wrap_pyfunction!(qdiscs, module)?)?;
    module.add_function(wrap_pyfunction!(qdisc_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(qdisc_replay, module)?)?;
    module.add_function(wrap_pyfunction!(congestion_controls, module)?)?;
    module.add_function(wrap_pyfunction!(congestion_control_parts, module)?)?;
    module.add_function(wrap_pyfunction!(packetdrill, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace, module)?)?;
    module.add_function(wrap_pyfunction!(trace::packets, module)?)?;
    Ok(())
}

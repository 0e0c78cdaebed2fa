//! The thin PyO3 layer: no logic.

use pyo3::prelude::*;

/// `bakeoff._sim`
#[pymodule]
fn _sim(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}

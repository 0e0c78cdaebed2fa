//! A Python object as a congestion control: each hook is a call of its method of the same name, if it has one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bakeoff_sim::Registry;
use bakeoff_sim::cc::sock::{CaState, TcpSock};
use bakeoff_sim::cc::{CaEvent, CcError, CongestionControl, RateSample, Reno};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::sock::{Sample, Sock};

/// The first error of a run, and where it was raised.
pub type Failure = Arc<Mutex<Option<(String, PyErr)>>>;

type Method = Option<Py<PyAny>>;

/// What makes the congestion controls of a crate known with which this extension was built.
pub static REGISTER: OnceLock<fn(&mut Registry)> = OnceLock::new();

/// The controls of that crate.
pub fn registered() -> Registry {
    let mut registry = Registry::default();
    if let Some(register) = REGISTER.get() {
        register(&mut registry);
    }
    registry
}

/// One flow's module. After an error no hook is called any more, and the run ends soon.
pub struct PythonCc {
    class: String,
    sock: Py<Sock>,
    failure: Failure,
    init: Method,
    ssthresh: Method,
    cong_avoid: Method,
    cong_control: Method,
    set_state: Method,
    cwnd_event: Method,
    in_ack_event: Method,
    pkts_acked: Method,
    undo_cwnd: Method,
    min_tso_segs: Method,
    tso_segs: Method,
    trace: Method,
    needs_ecn: bool,
    ect1: bool,
}

/// The crate's controls, and the modules by name: what a flow's `cc` says, and a class that takes no arguments.
///
/// # Errors
/// A key that is no string.
pub fn registry(modules: Option<&Bound<'_, PyDict>>, failure: &Failure) -> PyResult<Registry> {
    let mut registry = registered();
    for (name, class) in modules.into_iter().flatten() {
        let (name, class, failure) = (name.extract::<String>()?, class.unbind(), failure.clone());
        registry.register(&name, move |words, _| {
            words.parameter(&[])?;
            Python::attach(|py| PythonCc::new(class.bind(py), &failure))
        });
    }
    Ok(registry)
}

/// Locks it; an error that was noted stays readable whatever panicked meanwhile.
pub fn lock(failure: &Failure) -> MutexGuard<'_, Option<(String, PyErr)>> {
    failure.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PythonCc {
    fn new(class: &Bound<'_, PyAny>, failure: &Failure) -> Result<PythonCc, CcError> {
        let name: String = class.getattr("__name__").and_then(|n| n.extract()).unwrap_or_default();
        match Self::read(class, name.clone(), failure.clone()) {
            Ok(module) => Ok(module),
            Err(error) => {
                let message = CcError(format!("{name}: {error}"));
                lock(failure).get_or_insert((format!("{name}()"), error));
                Err(message)
            }
        }
    }

    fn read(class: &Bound<'_, PyAny>, name: String, failure: Failure) -> PyResult<PythonCc> {
        let py = class.py();
        let object = class.call0()?;
        let method = |name: &str| -> PyResult<Method> { Ok(object.getattr_opt(name)?.map(Bound::unbind)) };
        let flag = |name: &str| object.getattr_opt(name)?.map_or(Ok(false), |value| value.is_truthy());
        Ok(PythonCc {
            class: name,
            sock: Py::new(py, Sock(TcpSock::new(0, 1)))?,
            failure,
            init: method("init")?,
            ssthresh: method("ssthresh")?,
            cong_avoid: method("cong_avoid")?,
            cong_control: method("cong_control")?,
            set_state: method("set_state")?,
            cwnd_event: method("cwnd_event")?,
            in_ack_event: method("in_ack_event")?,
            pkts_acked: method("pkts_acked")?,
            undo_cwnd: method("undo_cwnd")?,
            min_tso_segs: method("min_tso_segs")?,
            tso_segs: method("tso_segs")?,
            trace: method("trace")?,
            needs_ecn: flag("needs_ecn")?,
            ect1: flag("ect1")?,
        })
    }

    /// Calls `method`, if there is one, with a copy of the socket that is gone when the hook returns; gives what
    /// `call` made of the answer and the copy.
    fn call<T>(
        &self,
        name: &str,
        method: &Method,
        tp: &TcpSock,
        call: impl FnOnce(&Bound<'_, PyAny>, &Bound<'_, Sock>) -> PyResult<T>,
    ) -> Option<(T, TcpSock)> {
        let method = method.as_ref()?;
        if lock(&self.failure).is_some() {
            return None;
        }
        Python::attach(|py| {
            let sock = self.sock.bind(py);
            let result = sock.try_borrow_mut().map_err(PyErr::from).and_then(|mut copy| {
                copy.0.clone_from(tp);
                drop(copy);
                let answer = call(method.bind(py), sock)?;
                Ok((answer, sock.try_borrow()?.0.clone()))
            });
            match result {
                Ok(done) => Some(done),
                Err(error) => {
                    lock(&self.failure).get_or_insert((format!("{}.{name}", self.class), error));
                    None
                }
            }
        })
    }

    /// A hook that answers nothing.
    fn tell(
        &self,
        name: &str,
        method: &Method,
        tp: &mut TcpSock,
        call: impl FnOnce(&Bound<'_, PyAny>, &Bound<'_, Sock>) -> PyResult<()>,
    ) {
        if let Some(((), after)) = self.call(name, method, tp, call) {
            *tp = after;
        }
    }

    /// A hook that answers a number of packets, at least `least`.
    fn ask(&self, name: &str, method: &Method, tp: &TcpSock, least: u32) -> Option<(u32, TcpSock)> {
        self.call(name, method, tp, |f, sk| {
            let answer = f.call1((sk,))?;
            match answer.extract::<u32>() {
                Ok(n) if (least..=0x7fff_ffff).contains(&n) => Ok(n),
                _ => Err(PyValueError::new_err(format!(
                    "returned {}; expected a whole number of packets, at least {least}",
                    answer.repr()?
                ))),
            }
        })
    }
}

impl CongestionControl for PythonCc {
    fn init(&mut self, tp: &mut TcpSock) {
        self.tell("init", &self.init, tp, |f, sk| f.call1((sk,)).map(drop));
    }

    fn ssthresh(&mut self, tp: &mut TcpSock) -> u32 {
        let Some((n, after)) = self.ask("ssthresh", &self.ssthresh, tp, 2) else { return Reno::half(tp) };
        *tp = after;
        n
    }

    fn cong_avoid(&mut self, tp: &mut TcpSock, acked: u32) {
        self.tell("cong_avoid", &self.cong_avoid, tp, |f, sk| f.call1((sk, acked)).map(drop));
    }

    fn has_cong_control(&self) -> bool {
        self.cong_control.is_some()
    }

    fn cong_control(&mut self, tp: &mut TcpSock, sample: &RateSample) {
        self.tell("cong_control", &self.cong_control, tp, |f, sk| {
            f.call1((sk, Sample::from(sample))).map(drop)
        });
    }

    fn set_state(&mut self, tp: &mut TcpSock, state: CaState) {
        self.tell("set_state", &self.set_state, tp, |f, sk| f.call1((sk, state as u8)).map(drop));
    }

    fn cwnd_event(&mut self, tp: &mut TcpSock, event: CaEvent) {
        self.tell("cwnd_event", &self.cwnd_event, tp, |f, sk| f.call1((sk, event as u8)).map(drop));
    }

    fn in_ack_event(&mut self, tp: &mut TcpSock, ece: bool) {
        self.tell("in_ack_event", &self.in_ack_event, tp, |f, sk| f.call1((sk, ece)).map(drop));
    }

    fn pkts_acked(&mut self, tp: &mut TcpSock, acked: u32, rtt_us: Option<u64>) {
        self.tell("pkts_acked", &self.pkts_acked, tp, |f, sk| f.call1((sk, acked, rtt_us)).map(drop));
    }

    fn undo_cwnd(&mut self, tp: &mut TcpSock) -> u32 {
        let Some((n, after)) = self.ask("undo_cwnd", &self.undo_cwnd, tp, 1) else {
            return tp.snd_cwnd.max(tp.prior_cwnd);
        };
        *tp = after;
        n
    }

    fn min_tso_segs(&self, tp: &TcpSock) -> u32 {
        self.ask("min_tso_segs", &self.min_tso_segs, tp, 1).map_or(2, |(n, _)| n)
    }

    fn tso_segs(&self, tp: &TcpSock) -> Option<u32> {
        self.ask("tso_segs", &self.tso_segs, tp, 1).map(|(n, _)| n)
    }

    fn needs_ecn(&self) -> bool {
        self.needs_ecn
    }

    fn ect1(&self) -> bool {
        self.ect1
    }

    fn trace(&self) -> Vec<(&'static str, f64)> {
        let read = |f: &Bound<'_, PyAny>, _: &Bound<'_, Sock>| -> PyResult<Vec<(String, f64)>> {
            let named = f.call0()?.cast_into::<PyDict>()?;
            named.iter().map(|(name, value)| Ok((name.extract()?, value.extract()?))).collect()
        };
        let tp = TcpSock::new(0, 1);
        let Some((named, _)) = self.call("trace", &self.trace, &tp, read) else { return Vec::new() };
        named.into_iter().map(|(name, value)| (interned(name), value)).collect()
    }

    fn failure(&self) -> Option<String> {
        lock(&self.failure).as_ref().map(|(place, error)| format!("{place}: {error}"))
    }
}

/// The same name for as long as the process lives: there are few, and they come back with every ACK.
fn interned(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let leaked: &'static str = name.leak();
    names.insert(leaked);
    leaked
}

//! What can go wrong, in one message that names the place, the value and what was expected.

/// An error of the agent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The document or the command line is not acceptable: nothing was begun, nothing written.
    #[error("{0}")]
    Refused(String),
    /// The kernel or another program refused something.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// 2 for what was refused, 1 for what failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Refused(_) => 2,
            Error::Failed(_) => 1,
        }
    }
}

/// Names the place where a call failed: `listen.map_err(at("tcp-sink 'a': port 5201"))`.
pub fn at<E: std::fmt::Display>(place: impl std::fmt::Display) -> impl FnOnce(E) -> Error {
    move |error| Error::Failed(format!("{place}: {error}"))
}

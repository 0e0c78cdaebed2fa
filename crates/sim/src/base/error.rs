//! Why a run is not made, or its result not given.

/// A document that this simulator does not run, with the place and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl From<String> for Refused {
    fn from(message: String) -> Self {
        Refused(message)
    }
}

impl From<Refused> for String {
    fn from(refused: Refused) -> Self {
        refused.0
    }
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The document is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A congestion control from outside failed.
    #[error("{0}")]
    Failed(String),
    /// An invariant broke: the result cannot be trusted.
    #[error("{0}")]
    Broken(String),
}

//! Why a run is not made, or its result not given.

pub use bakeoff_document::error::Refused;

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

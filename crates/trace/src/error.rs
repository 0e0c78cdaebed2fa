//! Why a capture cannot be read.

/// One sentence for the user, which names the file, the place in it and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read as a capture.
    #[error("{0}")]
    Refused(String),
    /// The caller asked to stop.
    #[error("reading was interrupted")]
    Interrupted,
}

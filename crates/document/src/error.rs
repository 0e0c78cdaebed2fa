//! Why a document is refused.

/// A document that is refused, with the place and the reason.
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

//! What is read: the resolved run, tc's language, the words of a congestion control.

pub mod bounds;
pub mod cc;
pub mod run;
pub mod tc;

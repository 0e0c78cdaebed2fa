//! Captures that are made here byte by byte, and what must be told of them.

mod datagrams;
mod flows;
mod forms;
mod frames;
mod hostile;
mod links;
mod marks;
mod published;

//! Congestion controls from outside this crate: a name, and what makes one.
//!
//! `bakeoff_sim::simulate_with` takes a [`Registry`]; its names stand before the known ones, in a flow's `cc`.

use std::collections::BTreeMap;

use super::{CcEnv, CcError, CongestionControl};
use bakeoff_document::cc::CcWords;

type Made = Box<dyn CongestionControl + Send>;
type Make = Box<dyn Fn(&mut CcWords, CcEnv) -> Result<Made, CcError> + Send + Sync>;

/// What is known besides [`super::NAMES`]; empty by default.
#[derive(Default)]
pub struct Registry(BTreeMap<String, Make>);

impl Registry {
    /// Makes `name` known. `make` is called once per flow: it reads the parameters after the name from the words
    /// (`words.parameter(&[])` refuses any) and gives the module.
    pub fn register<C, F>(&mut self, name: &str, make: F)
    where
        C: CongestionControl + Send + 'static,
        F: Fn(&mut CcWords, CcEnv) -> Result<C, CcError> + Send + Sync + 'static,
    {
        let boxed = move |words: &mut CcWords, env: CcEnv| -> Result<Made, CcError> {
            make(words, env).map(|module| Box::new(module) as Made)
        };
        self.0.insert(name.to_owned(), Box::new(boxed));
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Makes the module that `text` names, if it is known here. A name may hold spaces, as a path does.
    pub(super) fn make(&self, text: &str, env: CcEnv) -> Result<Result<Made, CcError>, CcEnv> {
        let named = |name: &str| {
            text.strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        };
        // The last of the names that fit is the longest.
        match self.0.iter().rev().find(|(name, _)| named(name)) {
            Some((name, make)) => Ok(make(&mut CcWords::after(text, name), env)),
            None => Err(env),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cc, Reno};
    use super::*;
    use crate::base::rng::Stream;
    use crate::base::units::Time;
    use crate::cc::sock::TcpSock;

    fn build(text: &str) -> Result<Cc, CcError> {
        let mut registry = Registry::default();
        registry.register("a b", |words, _| {
            words.parameter(&[])?;
            Ok(Reno)
        });
        registry.register("cubic", |words, _| {
            words.parameter(&["beta"])?;
            Ok(Reno)
        });
        Cc::build_with(text, CcEnv { rng: Stream::new(1, "flow"), now: Time::ZERO }, &registry)
    }

    #[test]
    fn names_from_outside_stand_before_the_known_ones() {
        let mut tp = TcpSock::new(1448, 250);
        tp.snd_cwnd = 100;
        // CUBIC keeps 717/1024 = 70 of 100, Reno 50.
        for (text, expected) in
            [("cubic", 50), ("cubic beta", 50), ("a b", 50), ("cubic@7.3", 70), ("reno", 50)]
        {
            let Ok(mut cc) = build(text) else { panic!("'{text}' was refused") };
            assert_eq!(cc.ssthresh(&mut tp), expected, "{text}");
        }
    }

    #[test]
    fn what_follows_the_name_is_its_parameters() {
        let error = |text| build(text).err().map(|e| e.to_string()).unwrap_or_default();
        assert_eq!(error("a b c"), "cc 'a b c': unknown parameter 'c' of a b; it has no parameters");
        assert!(error("a bc").starts_with("cc 'a bc': unknown congestion control 'a'"), "{}", error("a bc"));
    }
}

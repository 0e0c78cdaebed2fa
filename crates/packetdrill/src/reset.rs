//! Resets: those that end a connection, those that do not, and those that the endpoint sends.
//!
//! The simulator's connections never end like this; resets are wholly the driver's.
//!
//! Source: Linux 7.3 `net/ipv4/tcp_ipv4.c` (`tcp_v4_send_reset`), `tcp_input.c` (`tcp_validate_incoming`),
//! `tcp_minisocks.c` (`tcp_check_req`), `tcp.c` (`__tcp_close`); RFC 9293, section 3.10.7; RFC 5961, section 3.2.

use bakeoff_document::units::Time;
use bakeoff_sim::packet::Ecn;

use crate::endpoint::{Endpoint, Sent, State};
use crate::segment::{Flags, Segment};

impl Endpoint {
    /// The application closes its descriptor: what it has not read is refused with a reset.
    pub fn close(&mut self, now: Time) {
        if self.state() == State::SynSent {
            self.abort();
        } else if self.readable() > 0 {
            self.send_bare_ack(None, now);
            if let Some(sent) = self.sent.back_mut() {
                sent.segment.flags.rst = true;
            }
            self.abort();
        } else {
            self.last_ack = self.at_end();
            self.shutdown(now);
        }
    }

    /// A reset arrives: it counts if it has exactly the sequence number that is next, and is asked about if
    /// it lies elsewhere in the window.
    pub(super) fn on_reset(&mut self, segment: &Segment, now: Time) {
        let (next, window) = match &self.receiver {
            Some(receiver) => (receiver.rcv_nxt() as u32, receiver.window()),
            None => (0, u32::from(u16::MAX)),
        };
        let ahead = segment.seq.wrapping_sub(1).wrapping_sub(next);
        match self.state() {
            State::Closed | State::Listen => {}
            State::SynSent => self.abort(),
            _ if ahead > 0 && ahead < window => self.challenge(now),
            _ if ahead > 0 => {}
            State::SynReceived => {
                self.abort();
                self.listen();
            }
            State::Established => self.abort(),
        }
    }

    /// A segment for which there is no connection.
    pub(super) fn refuse(&mut self, segment: &Segment, now: Time) {
        let control = u32::from(segment.flags.syn) + u32::from(segment.flags.fin);
        let answer = Segment {
            ecn: Some(Ecn::NotEct),
            flags: Flags { rst: true, ack: !segment.flags.ack, ..Flags::default() },
            seq: if segment.flags.ack { segment.ack } else { 0 },
            ack: if segment.flags.ack { 0 } else { segment.end().wrapping_add(control) },
            window: Some(0),
            options: Some(Vec::new()),
            ..Segment::default()
        };
        self.sent.push_back(Sent { at: now, slack: Time::ZERO, segment: answer });
    }

    /// The peer closed first, and has acknowledged our FIN: the connection is gone.
    pub(super) fn finish_last_ack(&mut self) {
        let una = self.sender().map_or(0, |s| s.sock().snd_una);
        if self.last_ack && self.fin.is_some_and(|fin| una > fin) {
            self.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysctl::Settings;

    fn segment(text: &str) -> Segment {
        Segment::parse(text).unwrap()
    }

    fn open() -> Endpoint {
        let mut e = Endpoint::new(Settings::default());
        e.listen();
        e.on_segment(&segment("S 0:0(0) win 1000 <mss 1000,sackOK>"), Time::ZERO).unwrap();
        e.on_segment(&segment(". 1:1(0) ack 1 win 1000"), Time::ZERO).unwrap();
        e.sent.clear();
        e
    }

    fn answers(e: &mut Endpoint, text: &str) -> Vec<String> {
        e.on_segment(&segment(text), Time::from_ms(1000)).unwrap();
        e.sent.drain(..).map(|s| s.segment.to_string()).collect()
    }

    #[test]
    fn only_an_exact_reset_counts() {
        let mut e = open();
        // The window is 65535 bytes.
        assert_eq!(answers(&mut e, "R 65537:65537(0)"), [""; 0]);
        assert_eq!(answers(&mut e, "R 2:2(0)"), ["[noecn] . 1:1(0) ack 1 win 65535"]);
        assert_eq!(e.state(), State::Established);
        assert_eq!(answers(&mut e, "R 1:1(0)"), [""; 0]);
        assert_eq!(e.state(), State::Closed);
    }

    #[test]
    fn who_has_no_connection_answers_with_a_reset() {
        let mut e = Endpoint::new(Settings::default());
        assert_eq!(answers(&mut e, "P. 1:11(10) ack 7 win 1000"), ["[noecn] R 7:7(0) win 0"]);
        assert_eq!(answers(&mut e, "S 4:4(0) win 1000"), ["[noecn] R. 0:0(0) ack 5 win 0"]);
        assert_eq!(answers(&mut e, "R 1:1(0)"), [""; 0], "but not a reset");
    }

    #[test]
    fn what_was_not_read_is_refused_when_the_socket_is_closed() {
        for (read, flags) in [(9, "R."), (10, "F.")] {
            let mut e = open();
            answers(&mut e, "P. 1:11(10) ack 1 win 1000");
            e.read(read);
            e.close(Time::from_ms(1000));
            let sent: Vec<_> = e.sent.drain(..).map(|s| s.segment.to_string()).collect();
            assert_eq!(sent, [format!("[noecn] {flags} 1:1(0) ack 11 win 65535")]);
        }
    }

    #[test]
    fn the_last_ack_ends_the_connection_of_who_closed_last() {
        let mut e = open();
        answers(&mut e, "F. 1:1(0) ack 1 win 1000");
        e.close(Time::from_ms(1000));
        e.sent.clear();
        assert_eq!(answers(&mut e, ". 2:2(0) ack 2 win 1000"), [""; 0]);
        assert_eq!(answers(&mut e, ". 2:2(0) ack 2 win 1000"), ["[noecn] R 2:2(0) win 0"]);
    }
}

//! `tc -s -d qdisc show`: a tree of queues with configuration and statistics.
//!
//! Source: iproute2 7.2, by its output.
//!
//! Parents come before children, handles count up from the root's. Drops of a parent include those below it, as in
//! Linux (`qdisc_tree_reduce_backlog`).
//!
//! Departures: the queues that `tbf` and `prio` make themselves are shown, the tool hides them. `overlimits` of `tbf` and
//! `cake`: see [`super::Statistics::overlimits`].
//!
//! Validation: `tests/replay/test_tc_statistics.py`, every kind with traffic against the real tool.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Layout, Queue};
use crate::base::units::Time;

impl Queue {
    /// The whole tree; `device` is named as tc does when it shows all devices. Handles are shown in hexadecimal, as tc
    /// does.
    pub fn show_tree(&self, device: Option<&str>, root: u32, now: Time) -> String {
        let mut handles = BTreeMap::new();
        let mut text = String::new();
        self.for_each(&mut |path, queue| {
            let handle = root + handles.len() as u32;
            handles.insert(path.to_owned(), handle);
            let (above, last) = path.rsplit_once('/').unwrap_or(("", path));
            let place = match last {
                "" => "root refcnt 2".to_owned(),
                "child" => format!("parent {:x}:1", handles[above]),
                class => format!("parent {:x}:{class}", handles[above]),
            };
            let device = device.map_or(String::new(), |name| format!("dev {name} "));
            queue.show_one(&format!("{handle:x}: {device}{place}"), now, &mut text);
        });
        text
    }

    fn show_one(&self, place: &str, now: Time, text: &mut String) {
        let shown = self.show();
        let (kind, words) = shown.split_once(' ').unwrap_or((&shown, ""));
        let _ = writeln!(text, "{}", format!("qdisc {kind} {place} {words}").trim_end());
        let statistics = self.show_stats(now);
        // tc prints sfq's with its options.
        let first = self.layout() == Layout::LinesFirst;
        if first && !statistics.is_empty() {
            let _ = writeln!(text, "{statistics}");
        }
        let mut dropped = 0;
        self.for_each(&mut |_, below| dropped += below.tally.dropped());
        let (overlimits, requeues) = (self.overlimits(), self.requeues());
        let _ = writeln!(
            text,
            " Sent {} bytes {} pkt (dropped {dropped}, overlimits {overlimits} requeues {requeues})\n \
             backlog {} {}p requeues {requeues}",
            self.tally.sent_bytes,
            self.tally.sent + self.tally.more_segs,
            bakeoff_document::tc::show::size(self.backlog()),
            self.qlen(),
        );
        if !first && !statistics.is_empty() {
            let _ = writeln!(text, "{statistics}");
        }
        if self.layout() == Layout::EmptyLineLast {
            text.push('\n');
        }
    }
}

//! Subscriptions by pattern: checked when a member comes with one, looked up over all topics outside the shard.

mod syntax;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use callboard_protocol::ByteString;
use regex::{Regex, RegexBuilder};

use super::draft::Draft;
use super::error::Refusal;
use super::member::Member;
use super::records;
use super::state::{ResolvedRegex, SoftState};
use crate::Circumstances;

/// The least time between two look-ups of a group's patterns, unless there is a new one (Kafka has the same).
const MIN_REFRESH_INTERVAL_MS: i64 = 10_000;
/// After this long a look-up is held to be lost: whoever did it has crashed.
const LOOK_UP_TIMEOUT_MS: i64 = 10_000;
/// Bytes that a compiled pattern may take.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// Patterns to look up for a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookUp {
    /// The group.
    pub group_id: ByteString,
    /// The patterns.
    pub patterns: BTreeSet<ByteString>,
    /// All topics there are.
    pub topics: Vec<ByteString>,
    /// The metadata's offset at which they are.
    pub version: i64,
}

/// What patterns stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The group.
    pub group_id: ByteString,
    /// The metadata's offset that they were looked up at.
    pub version: i64,
    /// The topics' names by pattern.
    pub topics: BTreeMap<ByteString, BTreeSet<ByteString>>,
}

impl LookUp {
    /// Looks the patterns up. It takes as long as there are topics and patterns: not for the shard's own thread.
    pub fn run(self) -> Found {
        // A pattern that can't be compiled was taken by another version: it stands for nothing.
        let names = |pattern: &ByteString| -> BTreeSet<ByteString> {
            let Ok(regex) = compile(pattern) else { return BTreeSet::new() };
            self.topics.iter().filter(|topic| regex.is_match(topic)).cloned().collect()
        };
        let topics = self.patterns.iter().map(|pattern| (pattern.clone(), names(pattern))).collect();
        Found { group_id: self.group_id, version: self.version, topics }
    }
}

/// Checks a pattern that a member comes with.
///
/// # Errors
/// INVALID_REGULAR_EXPRESSION.
pub(super) fn check(pattern: &ByteString) -> Result<(), Refusal> {
    let invalid = |reason: String| Refusal::InvalidRegex { regex: pattern.clone(), reason };
    compile(pattern).map(drop).map_err(invalid)
}

/// A pattern in RE2's syntax that must match a topic's whole name.
fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = syntax::translate(pattern)?;
    RegexBuilder::new(&format!(r"\A(?:{translated})\z"))
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            // The parser's report has several lines with marks under the pattern; the last one says what is wrong.
            other => {
                other.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
            }
        })
}

/// Asks for the group's patterns to be looked up, if a member has one that is new, or if what they stand for may be out
/// of date.
pub(super) fn want(draft: &mut Draft, member: &Member, cx: &Circumstances<'_>) {
    if member.regex.is_empty()
        || draft.group.soft.resolving_since_ms.is_some_and(|since| is_under_way(since, cx))
    {
        return;
    }
    let is_due = match draft.group.regexes.get(&member.regex) {
        None => true,
        Some(resolved) => is_out_of_date(&draft.group.soft, resolved, cx),
    };
    if is_due {
        draft.group.soft.resolving_since_ms = Some(cx.monotonic_ms);
        draft.look_up = Some(LookUp {
            group_id: draft.id(),
            patterns: draft.group.patterns(),
            topics: cx.cluster.topics().into_iter().map(|topic| topic.name).collect(),
            version: cx.cluster.metadata_offset(),
        });
    }
}

fn is_under_way(since_ms: i64, cx: &Circumstances<'_>) -> bool {
    cx.monotonic_ms.saturating_sub(since_ms) < LOOK_UP_TIMEOUT_MS
}

fn is_out_of_date(soft: &SoftState, resolved: &ResolvedRegex, cx: &Circumstances<'_>) -> bool {
    let (version, is_recent, age_ms) = match soft.resolved {
        Some((version, at_ms)) => {
            let age_ms = cx.monotonic_ms.saturating_sub(at_ms);
            (version, age_ms < MIN_REFRESH_INTERVAL_MS, age_ms)
        }
        None => (resolved.version, false, cx.now_ms.saturating_sub(resolved.timestamp_ms)),
    };
    let is_behind = cx.cluster.metadata_offset() > version;
    (is_behind && !is_recent) || age_ms >= cx.settings.consumer.regex_refresh_interval_ms
}

/// Takes in what patterns stand for. The group is assigned anew if that is something else than before.
pub(super) fn found(draft: &mut Draft, found: &Found, cx: &Circumstances<'_>) {
    let group_id = draft.id();
    draft.group.soft.resolving_since_ms = None;
    draft.group.soft.resolved = Some((found.version, cx.monotonic_ms));
    let in_use = draft.group.patterns();
    let mut changed = false;
    for (pattern, topics) in found.topics.iter().filter(|(pattern, _)| in_use.contains(*pattern)) {
        let former = draft.group.regexes.get(pattern).map(Arc::clone);
        if former.as_ref().is_some_and(|former| former.topics == *topics) {
            continue;
        }
        changed |= former.is_some() || !topics.is_empty();
        let (version, timestamp_ms) = (found.version, cx.now_ms);
        draft.write(records::regex(
            &group_id,
            pattern,
            &ResolvedRegex { topics: topics.clone(), version, timestamp_ms },
        ));
    }
    if changed {
        draft.update_epoch(true, cx.cluster);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_valid(pattern: &str) -> bool {
        check(&pattern.into()).is_ok()
    }

    /// What Kafka 4.4.0 takes and refuses.
    #[test]
    fn patterns_are_those_of_re2() {
        for pattern in [
            "^t-(a|b)$",
            "(?i)T",
            "(?P<n>x)",
            "(?<n>x)",
            r"\pL",
            r"\p{Greek}",
            r"\d+",
            r"\Qa.b\E",
            "a|",
            " ",
            ".*",
            "[[:alpha:]]",
            r"\z",
            "a{1000}",
            "a{",
            "a{,2}",
            "a{x}",
            "[a[b]",
            "x*?",
            "x??",
            r"\x{61}",
            r"\x61",
            "(?i:a)",
            "(?im-s)a",
            "]",
            "}",
            "[]a]",
            "[^]a]",
            r"[\]]",
            r"\Qabc",
            r"\.",
            r"\_",
            r"\-",
            "[a-]",
            "(|a)",
            "()",
            r"\07",
        ] {
            assert!(is_valid(pattern), "{pattern} is taken: {:?}", check(&pattern.into()));
        }
        for pattern in [
            "[", "(?=x)", "(?!x)", "(?<=x)y", r"(a)\1", "*", "a**", "a{1001}", "a{2,1}", r"\", "(", ")",
            r"\C", r"\Z", "x++", "(?>x)", r"\u0061", "x*+", "a{2}{3}", "(?x)a", "(?u)a", "x{1}*", "+a", "|*",
            "(*)", r"\8", "[b-a]",
        ] {
            assert!(!is_valid(pattern), "{pattern} is refused");
        }
    }

    fn matches(pattern: &str, name: &str) -> bool {
        compile(pattern).unwrap().is_match(name)
    }

    #[test]
    fn a_pattern_must_match_the_whole_name() {
        assert!(matches("t-(a|b)", "t-a"));
        assert!(!matches("t-(a|b)", "t-ab"));
        assert!(!matches("t-(a|b)", "xt-a"));
        assert!(matches("a|ab", "ab"), "an alternative may match where an earlier one is too short");
    }

    #[test]
    fn what_the_two_syntaxes_write_alike_and_mean_otherwise_has_the_meaning_of_re2() {
        assert!(matches(r"\Qa.b\E", "a.b") && !matches(r"\Qa.b\E", "axb"));
        assert!(matches(r"\Qa*\E*", "a***"), "what follows a quotation holds for its last character");
        assert!(matches("a{", "a{") && matches("a{,2}", "a{,2}"));
        assert!(matches("[a&&b]", "&") && matches("[a[b]", "["));
        assert!(matches(r"\<a", "<a"));
    }

    #[test]
    fn a_pattern_that_would_take_too_much_memory_is_refused() {
        assert!(!is_valid("((a{1000}){1000}){1000}"));
    }
}

//! A compacted log through a random life against a plain model: appends of plain, idempotent and transactional batches,
//! rolls, rounds of compaction broken off anywhere, retention, deletions of records, restarts in order and not.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use callboard_protocol::records::rebuild::Ready;
use callboard_protocol::records::{BatchBuilder, Compression, CompressionLevels, batches};
use callboard_storage::{Cleaning, CleaningOptions, Log, LogConfig, OpenOptions, Origin, Step};
use common::*;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Known {
    key: String,
    value: Option<String>,
    /// The producer of the transaction it belongs to, while that is open.
    open: Option<usize>,
    aborted: bool,
}

/// A producer: its next sequence, and whether a transaction of its is open.
#[derive(Debug, Clone, Copy, Default)]
struct Producer {
    sequence: i32,
    open: bool,
}

struct Life<'a> {
    dir: &'a Path,
    config: LogConfig,
    random: Random,
    log: Option<Log>,
    records: BTreeMap<i64, Known>,
    /// 0 is idempotent, 1 and 2 are transactional.
    producers: [Producer; 3],
    compacted_to: i64,
    now_ms: i64,
    rounds: u32,
}

impl Life<'_> {
    fn log(&mut self) -> &mut Log {
        self.log.as_mut().unwrap()
    }

    fn step(&mut self) {
        self.now_ms += self.random.below(400) as i64;
        match self.random.below(24) {
            0..10 => self.append(),
            10..13 => self.end_transaction(),
            13 | 14 => self.log().roll(NOW).unwrap(),
            15 | 16 => self.compact(false),
            17 => self.compact(true),
            18 => self.restart(),
            19 => self.raise_start(),
            20 => self.log().flush().unwrap(),
            _ => self.check(),
        }
        let end = self.log().log_end_offset();
        self.log().advance_high_watermark(end);
    }

    fn append(&mut self) {
        let kind = self.random.below(4) as usize;
        let mut builder = BatchBuilder::new(0);
        if self.random.below(3) == 0 {
            builder = builder.compression(Compression::Gzip, CompressionLevels::default());
        }
        let count = 1 + self.random.below(4);
        if let Some(producer) = self.producers.get_mut(kind) {
            builder = builder.producer(kind as i64, 0, producer.sequence).transactional(kind > 0);
            producer.sequence += count as i32;
            producer.open = kind > 0;
        }
        let open = (1..=2).contains(&kind).then_some(kind);
        let mut known = Vec::new();
        for _ in 0..count {
            let key = format!("k{}", self.random.below(12));
            let text = format!("{}{}", self.random.below(1_000), "x".repeat(self.random.below(60) as usize));
            let value = (self.random.below(6) > 0).then_some(text);
            builder.append(self.now_ms, Some(key.as_bytes()), value.as_deref().map(str::as_bytes), &[]);
            known.push(Known { key, value, open, aborted: false });
        }
        let first = self.put(ready(builder), Origin::Client);
        self.records.extend((first..).zip(known));
    }

    fn put(&mut self, batch: Ready, origin: Origin) -> i64 {
        let now_ms = self.now_ms;
        self.log().append_as_leader(&[batch], 0, origin, now_ms).unwrap().first_offset
    }

    fn end_transaction(&mut self) {
        let id = 1 + self.random.below(2) as usize;
        if !std::mem::take(&mut self.producers[id].open) {
            return;
        }
        let committed = self.random.below(2) == 0;
        self.put(marker(id as i64, 0, committed, 0), Origin::Coordinator);
        for known in self.records.values_mut().filter(|known| known.open == Some(id)) {
            (known.open, known.aborted) = (None, !committed);
        }
    }

    /// A round; one that is broken off leaves what a crashed cleaner leaves.
    fn compact(&mut self, break_off: bool) {
        let reader = self.log().reader();
        let (end, now_ms, config) = (reader.log_end_offset(), self.now_ms, self.config.clone());
        let stable = reader.last_stable_offset(end);
        let cleanable = reader.cleanable(&config, Some(self.compacted_to), stable, now_ms).unwrap();
        let producers = self.log().last_of_producers();
        let map_bytes = if self.random.below(3) == 0 { 24 * 6 } else { 1 << 16 };
        let options = CleaningOptions { config, cleanable, producers, map_bytes, load_factor: 0.9, now_ms };
        let mut cleaning = Cleaning::new(&reader, options);
        let steps = if break_off { self.random.below(12) } else { u64::MAX };
        for _ in 0..steps {
            match cleaning.step().unwrap() {
                Step::More { .. } => {}
                Step::Swap(cleaned) => {
                    let old = self.log().swap_in(cleaned).unwrap().unwrap();
                    // They may still be there after a restart.
                    if self.random.below(2) == 0 {
                        callboard_storage::delete_files(&old).unwrap();
                    }
                }
                Step::Done { end_offset } => {
                    self.compacted_to = end_offset;
                    self.rounds += 1;
                    self.check();
                    return self.check_compacted(end_offset);
                }
            }
        }
    }

    fn raise_start(&mut self) {
        let (start, end) = (self.log().log_start_offset(), self.log().log_end_offset());
        let to = start + self.random.below(((end - start) / 5 + 1) as u64) as i64;
        self.log().set_log_start_offset(to).unwrap();
        let now_ms = self.now_ms;
        callboard_storage::delete_files(&self.log().remove_due_segments(end, now_ms).unwrap().files).unwrap();
        let start = self.log().log_start_offset();
        assert!(start >= to);
        self.records.retain(|offset, _| *offset >= start);
    }

    fn restart(&mut self) {
        let log = self.log.take().unwrap();
        let (recovery_point, start, end) =
            (log.recovery_point(), log.log_start_offset(), log.log_end_offset());
        let clean_shutdown = self.random.below(2) == 0;
        if clean_shutdown {
            log.close().unwrap();
        }
        let (config, now_ms) = (self.config.clone(), self.now_ms);
        let options = OpenOptions { config, recovery_point, log_start_offset: start, clean_shutdown, now_ms };
        let (log, report) = Log::open(self.dir, options).unwrap();
        assert_eq!((report.truncated_bytes, report.removed_segments), (0, 0), "{report:?}");
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (start, end));
        for (id, producer) in self.producers.iter().enumerate().filter(|(_, p)| p.sequence > 0) {
            let known = log.producer(id as i64).unwrap();
            assert_eq!(known.last_sequence(), producer.sequence - 1);
            assert_eq!(known.txn_first_offset.is_some(), producer.open, "producer {id}");
        }
        self.log = Some(log);
        self.check();
    }

    /// What a reader finds, by offset; read committed leaves out what was aborted.
    fn found(&mut self) -> BTreeMap<i64, (String, Option<String>)> {
        let reader = self.log().reader();
        let (mut offset, end) = (reader.log_start_offset(), reader.log_end_offset());
        let aborted = reader.aborted_transactions(offset, end).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut found = BTreeMap::new();
        while offset < end {
            let region = reader.read(offset, 4_000, i64::MAX, true).unwrap();
            if region.is_empty() {
                break;
            }
            for batch in batches(region.to_bytes().unwrap()).map_while(Result::ok) {
                batch.verify_crc().unwrap();
                let (header, first) = (batch.header, offset);
                offset = header.next_offset();
                let skipped = aborted.iter().any(|txn| {
                    header.is_transactional()
                        && txn.producer_id == header.producer_id
                        && (txn.first_offset..=txn.last_offset).contains(&header.last_offset())
                });
                if header.is_control() || skipped {
                    continue;
                }
                for record in batch.records().unwrap().map(Result::unwrap).filter(|r| r.offset >= first) {
                    let (key, value) = (record.key.unwrap(), record.value.as_deref().map(text));
                    found.insert(record.offset, (text(&key), value));
                }
            }
        }
        found
    }

    fn check(&mut self) {
        let found = self.found();
        for (offset, (key, value)) in &found {
            let known = self.records.get(offset).unwrap_or_else(|| panic!("{offset} was never written"));
            assert!((&known.key, &known.value) == (key, value) && !known.aborted, "{offset}: {known:?}");
        }
        let start = self.log().log_start_offset();
        let mut last = BTreeMap::new();
        for (offset, known) in self.records.iter().filter(|(_, known)| !known.aborted && known.open.is_none())
        {
            last.insert(known.key.clone(), (*offset, known.value.is_some()));
        }
        for (key, (offset, has_value)) in last {
            if has_value && offset >= start {
                assert!(found.contains_key(&offset), "{key} at {offset} is lost");
            }
        }
    }

    /// Below the end of a round each key is there once at most.
    fn check_compacted(&mut self, end_offset: i64) {
        let mut seen = BTreeMap::new();
        let found = self.found();
        for (offset, (key, _)) in found.range(..end_offset) {
            if let Some(before) = seen.insert(key.clone(), *offset) {
                panic!("{key} is at {before} and {offset}, below {end_offset}");
            }
        }
    }
}

#[test]
fn through_random_lives() {
    // More on demand: SEEDS=10000 cargo test -p callboard-storage --release --test lives
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(8);
    let first = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    for seed in first..first + seeds {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("t-0");
        let mut random = Random(seed);
        let config = LogConfig {
            segment_bytes: 900 + random.below(4_000),
            segment_index_bytes: 96 + random.below(400),
            index_interval_bytes: 1 + random.below(600),
            delete_retention_ms: random.below(3_000) as i64,
            producer_id_expiration_ms: i64::MAX,
            compacts: true,
            deletes: random.below(3) == 0,
            retention_bytes: Some(6_000),
            retention_ms: None,
            ..LogConfig::default()
        };
        let log = open_with(&dir, config.clone(), 0, false).0;
        let mut life = Life {
            dir: &dir,
            config,
            random,
            log: Some(log),
            records: BTreeMap::new(),
            producers: [Producer::default(); 3],
            compacted_to: 0,
            now_ms: NOW,
            rounds: 0,
        };
        for step in 0..200 {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| life.step()));
            assert!(outcome.is_ok(), "SEED={seed} SEEDS=1, step {step}");
        }
        assert!(life.rounds > 0, "seed {seed}");
    }
}

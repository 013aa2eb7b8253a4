//! The fuzz targets' entry functions on mutated vectors, with a fixed seed: a few seconds on any toolchain.
//! With `FUZZ_SEEDS` set to a folder, writes the vectors there instead, as seeds for `cargo fuzz`.

use callboard_protocol::messages::{self, Message};
use callboard_protocol::{ApiKey, for_each_message};
use serde_json::Value;

#[path = "../../../fuzz/entry.rs"]
mod entry;

const MUTATIONS: usize = 12;

/// A small generator of pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

fn lines(text: &'static str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a vector is JSON"))
}

fn names() -> Vec<&'static str> {
    macro_rules! names {
        ($($name:ident),*) => { vec![$(messages::$name::NAME),*] };
    }
    for_each_message!(names)
}

/// The vectors of requests as frames with a header.
fn frame_seeds() -> Vec<Vec<u8>> {
    lines(include_str!("vectors/messages.jsonl"))
        .filter_map(|vector| {
            let name = vector["message"].as_str()?.strip_suffix("Request")?;
            let key = (0..95).filter_map(|key| ApiKey::try_from(key).ok()).find(|key| key.name() == name)?;
            let version = i16::try_from(vector["version"].as_i64()?).ok()?;
            let mut frame = [key.code().to_be_bytes(), version.to_be_bytes()].concat();
            frame.extend([0, 0, 0, 9, 0, 2, b'm', b'e']);
            if key.info().request_header_version(version) >= 2 {
                frame.push(0);
            }
            frame.extend(bytes_of(vector["hex"].as_str()?));
            Some(frame)
        })
        .collect()
}

/// All vectors of messages, after the number and version that the target wants.
fn message_seeds() -> Vec<Vec<u8>> {
    let names = names();
    lines(include_str!("vectors/messages.jsonl"))
        .filter_map(|vector| {
            let number = names.iter().position(|name| Some(*name) == vector["message"].as_str())?;
            let mut seed = u16::try_from(number).ok()?.to_be_bytes().to_vec();
            seed.push(u8::try_from(vector["version"].as_i64()?).ok()?);
            seed.extend(bytes_of(vector["hex"].as_str()?));
            Some(seed)
        })
        .collect()
}

fn batch_seeds() -> Vec<Vec<u8>> {
    lines(include_str!("vectors/record-batches.jsonl"))
        .filter_map(|vector| vector["hex"].as_str().map(bytes_of))
        .collect()
}

fn mutate(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(data.len());
        match random.below(5) {
            0 => data.truncate(at),
            1 => data.insert(at, random.below(256) as u8),
            2 => drop((!data.is_empty()).then(|| data.remove(at))),
            3 => data.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
            _ => data.iter_mut().skip(at).take(4).for_each(|byte| *byte = [0, 0xff, 0x7f][random.below(3)]),
        }
    }
    data
}

fn smoke(seeds: &[Vec<u8>], target: fn(&[u8]) -> bool, name: &str) {
    assert!(seeds.len() > 40, "{name} has {} seeds", seeds.len());
    if let Ok(folder) = std::env::var("FUZZ_SEEDS") {
        let folder = std::path::Path::new(&folder).join(name);
        std::fs::create_dir_all(&folder).expect("a folder for seeds");
        for (at, seed) in seeds.iter().enumerate() {
            std::fs::write(folder.join(format!("vector-{at}")), seed).expect("a seed written");
        }
        return;
    }
    let mut random = Random(0x5eed_ca11_b0a4_d001);
    for seed in seeds {
        assert!(target(seed), "{name}: a vector is refused: {seed:02x?}");
        for _ in 0..MUTATIONS {
            target(&mutate(seed, &mut random));
        }
    }
}

#[test]
fn frames() {
    smoke(&frame_seeds(), entry::frame, "frame");
}

#[test]
fn messages() {
    smoke(&message_seeds(), entry::message, "message");
}

#[test]
fn batches() {
    smoke(&batch_seeds(), entry::batches, "batches");
}

//! Which partition a record goes to, as Kafka's own clients choose.

/// The hash of a key that Kafka's clients use (murmur2, seed 0x9747b28c).
fn murmur2(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ key.len() as u32;
    let mut chunks = key.chunks_exact(4);
    for chunk in &mut chunks {
        let mut k = chunk.iter().rev().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte));
        k = k.wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte));
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// The partition of a key among `count` (at least 1).
pub(crate) fn partition_of(key: &[u8], count: i32) -> i32 {
    (murmur2(key) & 0x7fff_ffff) as i32 % count.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Kafka's own test of its hash.
    #[test]
    fn hashes_are_kafkas() {
        for (key, hash) in [
            ("21", -973_932_308_i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
        }
    }

    #[test]
    fn a_partition_is_one_of_those_there_are() {
        for key in 0..1000_u32 {
            assert!((0..7).contains(&partition_of(&key.to_be_bytes(), 7)));
        }
    }
}

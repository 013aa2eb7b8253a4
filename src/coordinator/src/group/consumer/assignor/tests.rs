//! Random groups: every partition has one owner that wants it, loads are even, and little moves.

use super::*;

/// A small seeded generator: the same seed gives the same groups.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn random_group(random: &mut Random, same_topics: bool) -> GroupSpec {
    let topics: Vec<Uuid> = (1..=1 + random.below(6)).map(|id| Uuid::from_u128(id.into())).collect();
    let mut spec = GroupSpec::default();
    for topic in &topics {
        spec.partition_counts.insert(*topic, 1 + random.below(12) as i32);
    }
    for number in 0..1 + random.below(9) {
        let mut member = MemberSpec {
            instance_id: (random.below(3) == 0).then(|| format!("i{}", 100 - number).into()),
            ..Default::default()
        };
        member.topics = topics.iter().copied().filter(|_| same_topics || random.below(2) == 0).collect();
        spec.members.insert(format!("m{number}").into(), member);
    }
    spec
}

fn take(spec: &mut GroupSpec, assignment: &Assignment) {
    for (id, member) in &mut spec.members {
        member.current = assignment.get(id).cloned().unwrap_or_default();
    }
}

fn check_owners(spec: &GroupSpec, assignment: &Assignment, context: &str) {
    assert!(assignment.keys().eq(spec.members.keys()), "{context}: every member is in the assignment");
    for (topic, count) in &spec.partition_counts {
        let is_wanted = spec.members.values().any(|member| member.topics.contains(topic));
        for partition in 0..*count {
            let owners: Vec<_> =
                assignment.iter().filter(|(_, partitions)| partitions.contains(*topic, partition)).collect();
            assert_eq!(owners.len(), usize::from(is_wanted), "{context}: owners of {topic}-{partition}");
            for (owner, _) in owners {
                assert!(spec.members[owner].topics.contains(topic), "{context}: {owner} wants {topic}");
            }
        }
    }
    let owned: usize = assignment.values().map(Partitions::len).sum();
    let all: i32 = spec
        .partition_counts
        .iter()
        .filter(|(topic, _)| spec.members.values().any(|member| member.topics.contains(*topic)))
        .map(|(_, count)| count)
        .sum();
    assert_eq!(owned, all as usize, "{context}: nobody has what is not there");
}

/// No partition could go to a member with so much less that both would be better off.
fn check_even(spec: &GroupSpec, assignment: &Assignment, context: &str) {
    for (owner, partitions) in assignment {
        for (topic, _) in partitions.topics() {
            for (other, member) in spec.members.iter().filter(|(_, member)| member.topics.contains(&topic)) {
                let (more, less) = (partitions.len(), assignment[other].len());
                assert!(
                    more <= less + 1,
                    "{context}: {owner} has {more}, {other} has {less}, both want {topic} ({member:?})"
                );
            }
        }
    }
}

/// How many partitions have another owner than before.
fn moved(spec: &GroupSpec, assignment: &Assignment) -> usize {
    let kept = spec.members.iter().map(|(id, member)| {
        member.current.iter().filter(|(topic, partition)| assignment[id].contains(*topic, *partition)).count()
    });
    assignment.values().map(Partitions::len).sum::<usize>() - kept.sum::<usize>()
}

#[test]
fn uniform_is_exact_even_and_still_when_nothing_changes() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let same = seed % 2 == 0;
        let mut spec = random_group(&mut random, same);
        for step in 0..6 {
            let context = format!("seed {seed}, step {step}");
            let assignment = Assignor::Uniform.assign(&spec);
            check_owners(&spec, &assignment, &context);
            check_even(&spec, &assignment, &context);
            take(&mut spec, &assignment);
            assert_eq!(
                moved(&spec, &Assignor::Uniform.assign(&spec)),
                0,
                "{context}: nothing moves without need"
            );
            change(&mut spec, &mut random, same);
        }
    }
}

/// A member comes or goes, a topic grows, or one is wanted no more.
fn change(spec: &mut GroupSpec, random: &mut Random, same: bool) {
    let topics: Vec<Uuid> = spec.partition_counts.keys().copied().collect();
    match random.below(4) {
        0 if spec.members.len() > 1 => {
            let gone =
                spec.members.keys().nth(random.below(spec.members.len() as u64) as usize).cloned().unwrap();
            spec.members.remove(&gone);
        }
        1 => {
            let topic = topics[random.below(topics.len() as u64) as usize];
            *spec.partition_counts.get_mut(&topic).unwrap() += 2;
        }
        2 if !same => {
            let index = random.below(spec.members.len() as u64) as usize;
            if let Some(member) = spec.members.values_mut().nth(index) {
                member.topics = topics.into_iter().filter(|_| random.below(2) == 0).collect();
            }
        }
        _ => {
            let topics = match same {
                true => spec.members.values().next().map(|member| member.topics.clone()).unwrap_or_default(),
                false => topics.into_iter().filter(|_| random.below(2) == 0).collect(),
            };
            let id = format!("n{}", random.below(1_000_000));
            spec.members.insert(id.into(), MemberSpec { topics, ..Default::default() });
        }
    }
}

#[test]
fn with_the_same_topics_only_what_must_move_moves() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let mut spec = random_group(&mut random, true);
        let first = Assignor::Uniform.assign(&spec);
        take(&mut spec, &first);
        let topics = spec.members.values().next().unwrap().topics.clone();
        spec.members.insert("new".into(), MemberSpec { topics, ..Default::default() });
        let second = Assignor::Uniform.assign(&spec);
        assert_eq!(
            moved(&spec, &second),
            second["new"].len(),
            "seed {seed}: all that moves goes to the newcomer"
        );
        take(&mut spec, &second);
        let freed = spec.members.remove("new").unwrap().current.len();
        assert_eq!(
            moved(&spec, &Assignor::Uniform.assign(&spec)),
            freed,
            "seed {seed}: only what is free moves"
        );
    }
}

#[test]
fn range_gives_each_member_the_same_numbers_of_topics_of_one_size() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let spec = random_group(&mut random, seed % 2 == 0);
        let assignment = Assignor::Range.assign(&spec);
        check_owners(&spec, &assignment, &format!("seed {seed}"));
        for (id, partitions) in &assignment {
            for (topic, numbers) in partitions.topics() {
                let numbers: Vec<i32> = numbers.iter().copied().collect();
                assert!(
                    numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
                    "seed {seed}: {id} has one range of {topic}"
                );
            }
        }
        if seed % 2 == 0 {
            let of_size = |size: i32| spec.partition_counts.iter().filter(move |(_, count)| **count == size);
            for (id, partitions) in &assignment {
                for size in 1..=12 {
                    let mut numbers = of_size(size)
                        .map(|(topic, _)| partitions.topics().find(|(t, _)| t == topic).map(|(_, n)| n));
                    let first = numbers.next();
                    assert!(
                        numbers.all(|other| Some(other) == first),
                        "seed {seed}: {id}, topics of {size} partitions"
                    );
                }
            }
        }
    }
}

#[test]
fn range_goes_by_instance_ids_then_by_member_ids() {
    let mut spec = GroupSpec::default();
    let topic = Uuid::from_u128(1);
    spec.partition_counts.insert(topic, 5);
    for (id, instance) in [("a", None), ("b", Some("z")), ("c", Some("y"))] {
        let topics = BTreeSet::from([topic]);
        let member =
            MemberSpec { instance_id: instance.map(ByteString::from_static), topics, ..Default::default() };
        spec.members.insert(id.into(), member);
    }
    let assignment = Assignor::Range.assign(&spec);
    let numbers = |id: &str| assignment[id].iter().map(|(_, partition)| partition).collect::<Vec<_>>();
    assert_eq!((numbers("c"), numbers("b"), numbers("a")), (vec![0, 1], vec![2, 3], vec![4]));
}

#[test]
fn nobody_gets_nothing() {
    assert!(Assignor::Uniform.assign(&GroupSpec::default()).is_empty());
    assert!(Assignor::Range.assign(&GroupSpec::default()).is_empty());
}

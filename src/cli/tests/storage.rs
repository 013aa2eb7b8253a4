//! `callboard storage` beside Kafka's storage tool: the same arguments, the same output and exit code.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// One command and what Kafka's tool made of it.
#[derive(Default)]
struct Case {
    group: String,
    arguments: Vec<String>,
    out: Vec<String>,
    err: Vec<String>,
    code: i32,
}

struct Cases {
    files: Vec<(String, String)>,
    cases: Vec<Case>,
}

fn read_cases() -> Cases {
    let (mut files, mut cases, mut group) = (Vec::new(), Vec::<Case>::new(), String::new());
    for line in include_str!("storage-tool.tsv").lines().filter(|line| !line.starts_with('#')) {
        let (kind, rest) = line.split_once('\t').unwrap();
        match kind {
            "file" => {
                let (name, text) = rest.split_once('\t').unwrap();
                files.push((name.to_owned(), text.replace("\\n", "\n")));
            }
            "group" => group = rest.to_owned(),
            "$" => {
                let arguments = rest.split('\t').filter(|a| !a.is_empty()).map(str::to_owned).collect();
                cases.push(Case { group: group.clone(), arguments, ..Case::default() });
            }
            "out" => cases.last_mut().unwrap().out.push(rest.to_owned()),
            "err" => cases.last_mut().unwrap().err.push(rest.to_owned()),
            "code" => cases.last_mut().unwrap().code = rest.parse().unwrap(),
            other => panic!("{other}"),
        }
    }
    Cases { files, cases }
}

fn callboard(arguments: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_callboard")).arg("storage").args(arguments).env_clear().output().unwrap()
}

/// The lines of an output, with the directory and random ids replaced.
fn lines(bytes: &[u8], dir: &Path) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).unwrap().replace(&dir.display().to_string(), "{dir}");
    let mask = |line: &str| match line.split_once("directory.id=") {
        Some((before, after)) => format!("{before}directory.id={{id}}{}", &after[22..]),
        None => line.to_owned(),
    };
    text.lines().map(mask).collect()
}

/// Kafka formats several directories in an order of its own.
fn unordered(lines: &[String]) -> Vec<String> {
    let mut lines = lines.to_vec();
    lines.sort();
    lines
}

#[test]
fn commands_print_and_end_as_kafkas_do() {
    let Cases { files, cases } = read_cases();
    let mut wrong = Vec::new();
    let mut dir = tempfile::tempdir().unwrap();
    let mut group = String::new();
    for case in &cases {
        if case.group != group {
            dir = tempfile::tempdir().unwrap();
            for (name, text) in &files {
                let text = text.replace("{dir}", &dir.path().display().to_string());
                fs::write(dir.path().join(name), text).unwrap();
            }
            group.clone_from(&case.group);
        }
        let here = dir.path().display().to_string();
        let arguments: Vec<_> = case.arguments.iter().map(|a| a.replace("{dir}", &here)).collect();
        let output = callboard(&arguments);
        let (out, err) = (lines(&output.stdout, dir.path()), lines(&output.stderr, dir.path()));
        // Usage texts are each tool's own.
        let is_usage = case.err.first().is_some_and(|line| line.starts_with("usage:"));
        let same_text = unordered(&out) == unordered(&case.out) && (is_usage || err == case.err);
        if output.status.code() != Some(case.code) || !same_text {
            wrong.push(format!(
                "{}: {:?}\n  ours  {:?} {out:?} {err:?}\n  Kafka {} {:?} {:?}",
                case.group, case.arguments, output.status, case.code, case.out, case.err
            ));
        }
    }
    assert!(cases.len() > 80, "{}", cases.len());
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_random_uuid_is_printed() {
    let output = callboard(&["random-uuid".to_owned()]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.trim_end().len(), 22, "{text}");
}

#[test]
fn a_formatted_directory_holds_meta_properties_and_the_first_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.properties");
    let data = dir.path().join("data");
    let text = format!(
        "process.roles=broker,controller\nnode.id=7\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n\
         controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={}\n",
        data.display()
    );
    fs::write(&file, text).unwrap();
    let line = format!("format -t 4L6g3nShT-eMCtK--X86sw --standalone -c {}", file.display());
    let output = callboard(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert!(output.status.success(), "{output:?}");
    let meta = fs::read_to_string(data.join("meta.properties")).unwrap();
    for line in ["version=1", "cluster.id=4L6g3nShT-eMCtK--X86sw", "node.id=7"] {
        assert!(meta.lines().any(|other| other == line), "{meta}");
    }
    let log = data.join("__cluster_metadata-0");
    let names: Vec<_> = fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["00000000000000000000-0000000000.checkpoint"]);
}

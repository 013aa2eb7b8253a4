//! The node as a process: how it starts, says that it is ready, stops and refuses.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn callboard() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A port such that it and the next one are free. Ports below the range that systems hand out by themselves, each test
/// process from another start.
fn free_ports() -> u16 {
    let start = 10_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let free = |port: &u16| TcpListener::bind(("localhost", *port)).is_ok();
    static NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(0);
    loop {
        let port = start + NEXT.fetch_add(2, std::sync::atomic::Ordering::Relaxed);
        if free(&port) && free(&(port + 1)) {
            return port;
        }
    }
}

/// A running node that is killed when the test ends early.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// The first line on standard output.
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    }

    /// Reads standard error up to a line with this text.
    fn wait_for_log(&mut self, text: &str) -> String {
        let mut lines = BufReader::new(self.0.stderr.as_mut().unwrap()).lines();
        lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.contains(text))
            .unwrap_or_else(|| panic!("no {text}"))
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end; gives the exit code and what was logged.
    fn end(&mut self) -> (Option<i32>, String) {
        let code = self.0.wait().unwrap().code();
        let mut log = String::new();
        self.0.stderr.as_mut().unwrap().read_to_string(&mut log).unwrap();
        (code, log)
    }
}

fn dev(port: u16, dir: &Path) -> Running {
    let mut command = callboard();
    command.args(["dev", "--port", &port.to_string(), "--data-dir"]).arg(dir);
    Running(command.spawn().unwrap())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn dev_formats_serves_stops_on_sigterm_and_starts_again() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_ports();
    for signal in ["TERM", "INT"] {
        let mut node = dev(port, dir.path());
        let line = node.first_line();
        assert!(line.starts_with(&format!("Callboard is ready on PLAINTEXT://localhost:{port}")), "{line}");
        TcpStream::connect(("localhost", port)).unwrap();
        node.signal(signal);
        let (code, log) = node.end();
        assert_eq!(code, Some(0), "{log}");
        assert!(dir.path().join(".kafka_cleanshutdown").exists());
    }
}

#[test]
fn a_second_node_on_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = dev(free_ports(), dir.path());
    node.first_line();
    let second = dev(free_ports(), dir.path()).end();
    assert_eq!(second.0, Some(1));
    assert!(second.1.contains("is in use: another node holds"), "{}", second.1);
    node.signal("TERM");
    assert_eq!(node.end().0, Some(0));
}

fn write_settings(dir: &Path, port: u16, more: &str) -> std::path::PathBuf {
    let file = dir.join("server.properties");
    let text = format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
         listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{}\n\
         controller.quorum.bootstrap.servers=localhost:{}\nlog.dirs={}\n{more}",
        port + 1,
        port + 1,
        dir.join("data").display()
    );
    fs::write(&file, text).unwrap();
    file
}

fn format(file: &Path) {
    let line = ["storage", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "--standalone", "-c"];
    let output = callboard().args(line).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn server_needs_a_formatted_directory() {
    let dir = tempfile::tempdir().unwrap();
    let file = write_settings(dir.path(), free_ports(), "");
    let output = callboard().arg("server").arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("data is not formatted. Format it with: callboard storage format"));
}

#[test]
fn server_logs_one_line_at_its_start_and_one_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let file = write_settings(dir.path(), free_ports(), "ssl.protocol=TLSv1.3\nmade.up=1\n");
    format(&file);
    let mut node = Running(callboard().arg("server").arg(&file).spawn().unwrap());
    let ready = node.wait_for_log(" ready ");
    assert!(ready.contains("4L6g3nShT-eMCtK--X86sw"), "{ready}");
    node.signal("TERM");
    let (code, log) = node.end();
    assert_eq!(code, Some(0), "{log}");
    let stopped: Vec<_> = log.lines().filter(|line| line.contains("stopped")).collect();
    assert_eq!(stopped.len(), 1, "{log}");
    assert!(stopped[0].contains("SIGTERM"), "{log}");
}

#[test]
fn what_is_wrong_with_the_settings_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let file = write_settings(dir.path(), free_ports(), "num.partitions=0\n");
    let run = |arguments: &[&str]| callboard().arg("server").arg(&file).args(arguments).output().unwrap();
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output), "Invalid value 0 for configuration num.partitions: Value must be at least 1\n");
    // An override mends it, and the next thing wrong is the directory.
    let output = run(&["--override", "num.partitions=1"]);
    assert!(text(&output).contains("is not formatted"), "{}", text(&output));
    let output = callboard().arg("server").arg(dir.path().join("none")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("cannot read"), "{}", text(&output));
}

#[test]
fn a_port_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_ports();
    let _taken = TcpListener::bind(("localhost", port)).unwrap();
    let (code, log) = dev(port, dir.path()).end();
    assert_eq!(code, Some(1));
    assert!(log.contains(&format!(":{port}")), "{log}");
    assert_eq!(log.matches("Address already in use").count(), 1, "{log}");
}

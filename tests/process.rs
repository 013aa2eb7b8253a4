//! The real binary as a child process.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use callboard_client::{Client, ClientOptions};

/// How long a node may take to answer.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A node of one, on a data directory that outlives it. Killed when dropped.
#[derive(Debug)]
pub struct Node {
    child: Child,
    port: u16,
    data_dir: PathBuf,
    overrides: Vec<String>,
}

impl Node {
    /// Starts `callboard dev` on a free port, with settings as `name=value`, and waits until it answers.
    pub async fn start(data_dir: &Path, overrides: &[&str]) -> Self {
        let port = free_port();
        let overrides: Vec<String> = overrides.iter().map(|setting| (*setting).to_owned()).collect();
        let child = spawn(port, data_dir, &overrides);
        let mut node = Self { child, port, data_dir: data_dir.to_owned(), overrides };
        node.ready().await;
        node
    }

    /// Where the node listens.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Whether the process runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends the process at once, as `kill -9` does, and starts it again on the same port and directory.
    pub async fn kill_and_restart(&mut self) {
        self.child.kill().expect("the node runs");
        self.child.wait().expect("the node is a child");
        self.child = spawn(self.port, &self.data_dir, &self.overrides);
        self.ready().await;
    }

    /// Waits until the node answers as a broker.
    async fn ready(&mut self) {
        let end = tokio::time::Instant::now() + START_LIMIT;
        loop {
            let options = ClientOptions {
                request_timeout: Duration::from_secs(5),
                ..ClientOptions::new(self.address())
            };
            if let Ok(client) = Client::connect(options).await
                && !client.metadata().brokers.is_empty()
            {
                return;
            }
            assert!(self.is_running(), "the node ended before it answered");
            assert!(tokio::time::Instant::now() < end, "the node does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(port: u16, data_dir: &Path, overrides: &[String]) -> Child {
    let mut command = Command::new(binary());
    command.arg("dev").arg("--port").arg(port.to_string()).arg("--data-dir").arg(data_dir);
    for setting in overrides {
        command.arg("--override").arg(setting);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the binary starts")
}

/// The binary beside this test's executable, built now if it is not up to date.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test has a path");
        let profile_dir = test.ancestors().nth(2).expect("tests are in target/PROFILE/deps").to_owned();
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--quiet", "--package", "callboard-cli", "--bin", "callboard"]);
        if profile_dir.ends_with("release") {
            build.arg("--release");
        }
        let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
        assert!(built.success(), "the binary does not build");
        profile_dir.join("callboard")
    })
}

/// A port that is free, and the next one with it, which the controller takes.
fn free_port() -> u16 {
    let bind = |port| TcpListener::bind(("127.0.0.1", port));
    loop {
        let first = bind(0).expect("a free port");
        let port = first.local_addr().expect("bound").port();
        if port.checked_add(1).is_some_and(|next| bind(next).is_ok()) {
            return port;
        }
    }
}

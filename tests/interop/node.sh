# Starts and stops one release node for a test run; sourced by the runners. CALLBOARD_BIN names the program.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${CALLBOARD_BIN:-${CARGO_TARGET_DIR:-$root/target}/release/callboard}

# free_port: a port that is free, and the next one with it, which the controller takes.
free_port() {
  python3 - <<'PY'
import socket
def bind(port):
    s = socket.socket()
    s.bind(("127.0.0.1", port))
    return s
while True:
    first = bind(0)
    port = first.getsockname()[1]
    try:
        bind(port + 1)
        break
    except (OSError, OverflowError):
        pass
print(port)
PY
}

# await_port PORT: until something listens there, 20 s at most.
await_port() {
  python3 - "$1" <<'PY'
import socket, sys, time
end = time.monotonic() + 20
while True:
    try:
        socket.create_connection(("localhost", int(sys.argv[1])), 1).close()
        break
    except OSError:
        if time.monotonic() > end:
            sys.exit("the node did not listen within 20 s")
        time.sleep(0.02)
PY
}

# start_node DIR PORT [PROPERTY…]: a fresh node in DIR; its process id is in DIR/pid, its log in DIR/log.
start_node() {
  local dir=$1 port=$2 overrides=() property
  shift 2
  for property in "$@"; do overrides+=(--override "$property"); done
  mkdir -p "$dir"
  "$bin" dev --port "$port" --data-dir "$dir/data" "${overrides[@]}" >>"$dir/log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
  await_port "$port" || { tail -n 20 "$dir/log" >&2; return 1; }
}

# stop_node DIR [SIGNAL]: ends it and waits; says so when it ended with an error.
stop_node() {
  local pid
  pid=$(cat "$1/pid" 2>/dev/null) || return 0
  kill "-${2:-TERM}" "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
}

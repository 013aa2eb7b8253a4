// Package probe runs small cases against a broker and records what was seen in
// a form that two brokers' records can be compared in.
package probe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What a case needs beyond a broker that runs.
const (
	Plain   = "1 broker"
	Alone   = "alone"   // changes the broker for others, so that it runs by itself
	Restart = "restart" // stops and starts the broker, and may touch its data
	Tuned   = "tuned"   // the quick timers of broker.properties
)

// Case is one report turned into probes.
type Case struct {
	ID, Area, Title, Needs string
	Run                    func(*X)
}

// X is one run of one case.
type X struct {
	C *Conn // a connection for what the case does besides its probes

	env     *env
	prefix  string
	mu      sync.Mutex
	seen    map[string]any
	strings map[string]string
	pids    map[int64]string
	times   map[int64]string
	conns   []*Conn
}

// env is what all cases of a run share.
type env struct {
	addr, ctl, data string
	plain           bool // do not wait for coordinators
	tops            map[int16]int16
	node            int32
}

// stop ends a case early.
type stop struct{ why string }

// Fail ends the case: the probes could not be made.
func (x *X) Fail(format string, args ...any) { panic(stop{fmt.Sprintf(format, args...)}) }

// Must fails the case on an error.
func (x *X) Must(err error) {
	if err != nil {
		x.Fail("%v", err)
	}
}

// See records what one probe showed.
func (x *X) See(probe string, v any) {
	v = x.Norm(v)
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.seen[probe]; ok {
		panic(stop{"two probes named " + probe})
	}
	x.seen[probe] = v
}

// N makes a name unique to this run of the case.
func (x *X) N(name string) string { return x.prefix + name }

// Alias gives a name to a string that differs from run to run.
func (x *X) Alias(actual, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if actual != "" {
		x.strings[actual] = name
	}
}

// AliasTime gives a name to a moment in milliseconds.
func (x *X) AliasTime(ms int64, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.times[ms] = name
}

// Node is the id of the broker.
func (x *X) Node() int32 { return x.env.node }

// Addr is where the broker listens.
func (x *X) Addr() string { return x.env.addr }

// Dial opens a connection that is closed with the case.
func (x *X) Dial() *Conn {
	c, err := dial(x.env.addr)
	x.Must(err)
	x.mu.Lock()
	x.conns = append(x.conns, c)
	x.mu.Unlock()
	return c
}

// Client is Dial under a client id.
func (x *X) Client(id string) *Conn {
	c := x.Dial()
	c.ClientID = &id
	return c
}

// Top is the highest version of an API that both sides know.
func (x *X) Top(req kmsg.Request) int16 {
	v, ok := x.env.tops[req.Key()]
	if !ok {
		x.Fail("%s is not advertised", kmsg.NameForKey(req.Key()))
	}
	return min(v, req.MaxVersion())
}

// Try sends a request and returns the answer, or what came instead.
func (x *X) Try(c *Conn, v int16, req kmsg.Request) any {
	resp, err := c.Ask(v, req)
	if err != nil {
		return err.Error()
	}
	return resp
}

// Probe is Try on a fresh connection, recorded.
func (x *X) Probe(probe string, v int16, req kmsg.Request) {
	x.See(probe, x.Try(x.Dial(), v, req))
}

type requester[R any] interface {
	kmsg.Request
	RequestWith(context.Context, kmsg.Requestor) (R, error)
}

// Do sends a request at its top version over the case's own connection; the answer must come.
func Do[R any](x *X, req requester[R]) R { return DoAt(x, x.C, x.Top(req), req) }

// DoAt is Do over a given connection at a given version.
func DoAt[R any](x *X, c *Conn, v int16, req requester[R]) R {
	req.SetVersion(v)
	resp, err := req.RequestWith(context.Background(), c)
	if err != nil {
		x.Fail("%T v%d: %v", req, v, err)
	}
	return resp
}

// Until repeats a check until it holds.
func (x *X) Until(what string, within time.Duration, f func() bool) {
	if !x.Wait(within, f) {
		x.Fail("%s: not within %v", what, within)
	}
}

// Wait is Until as an observation.
func (x *X) Wait(within time.Duration, f func() bool) bool {
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		if f() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// Timed runs f and tells whether it took between two durations.
func Timed(lo, hi time.Duration, f func()) string {
	start := time.Now()
	f()
	switch d := time.Since(start); {
	case d < lo:
		return fmt.Sprintf("sooner than %v", lo)
	case d > hi:
		return fmt.Sprintf("later than %v", hi)
	}
	return fmt.Sprintf("after %v to %v", lo, hi)
}

// Code names an error code.
func Code(code int16) string {
	if code == 0 {
		return "0"
	}
	if e := kerr.TypedErrorForCode(code); e != nil && e.Code == code {
		return fmt.Sprintf("%d %s", code, e.Message)
	}
	return fmt.Sprint(code)
}

// run executes a case within a time limit and returns what was seen.
func (c Case) run(e *env, limit time.Duration) map[string]any {
	x := &X{env: e, prefix: unique(c.ID), seen: map[string]any{}, strings: map[string]string{},
		pids: map[int64]string{}, times: map[int64]string{}}
	done := make(chan string, 1)
	go func() {
		why := ""
		defer func() { done <- why }()
		defer func() {
			if r := recover(); r != nil {
				if s, ok := r.(stop); ok {
					why = x.text(s.why)
				} else {
					why = fmt.Sprintf("panic: %v", r)
				}
			}
		}()
		x.C = x.Dial()
		c.Run(x)
	}()
	var why string
	select {
	case why = <-done:
	case <-time.After(limit):
		why = fmt.Sprintf("not done within %v", limit)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.conns {
		c.Close()
	}
	out := map[string]any{}
	for k, v := range x.seen {
		out[k] = v
	}
	if why != "" {
		out["FAILED"] = why
	}
	return out
}

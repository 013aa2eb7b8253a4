package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const usage = `usage:
  run BOOTSTRAP [-only C001,C005] [-out results.json] [-parallel 4] [-ctl COMMAND -data DIR] [-coordinators=false] [-against golden.json]
  record BOOTSTRAP [-only …] [-ctl COMMAND -data DIR]     run, and write what was seen into golden.json
  diff A.json B.json                                      the cases that differ; those that one side lacks do not count
  list                                                    the cases that are implemented
`

// Seen is what each case of a run showed, probe by probe.
type Seen map[string]map[string]any

// Main is the command line over a table of cases.
func Main(cases []Case) {
	sort.Slice(cases, func(i, j int) bool { return cases[i].ID < cases[j].ID })
	if err := command(cases, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command(cases []Case, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch {
	case args[0] == "list":
		for _, c := range cases {
			fmt.Printf("%s  %-24s %-9s %s\n", c.ID, c.Area, c.Needs, c.Title)
		}
		return nil
	case args[0] == "diff" && len(args) == 3:
		a, err := load(args[1])
		if err != nil {
			return err
		}
		b, err := load(args[2])
		if err != nil {
			return err
		}
		return Diff(a, b)
	case (args[0] == "run" || args[0] == "record") && len(args) > 1:
		return run(cases, args[0] == "record", args[1], args[2:])
	}
	return errors.New(usage)
}

func run(cases []Case, record bool, addr string, args []string) error {
	f := flag.NewFlagSet("run", flag.ExitOnError)
	only := f.String("only", "", "cases to run, by id or by the start of their area, separated by commas")
	out := f.String("out", "", "where the results go")
	against := f.String("against", "", "results to compare with")
	parallel := f.Int("parallel", 4, "cases at once")
	ctl := f.String("ctl", "", "command that stops, kills or starts the broker, which is appended to it")
	data := f.String("data", "", "the broker's log directory, for cases that damage files")
	coordinators := f.Bool("coordinators", true, "wait for the broker's coordinators first")
	f.Parse(args)
	e := &env{addr: addr, ctl: *ctl, data: *data, plain: !*coordinators}
	if err := e.await(); err != nil {
		return err
	}
	seen := e.runAll(pick(cases, *only, *ctl != ""), *parallel)
	if record {
		*out = "golden.json"
		if old, err := load(*out); err == nil {
			for id, s := range old {
				if _, ok := seen[id]; !ok {
					seen[id] = s
				}
			}
		}
	}
	if *out != "" {
		if err := save(*out, seen); err != nil {
			return err
		}
	}
	if *against != "" {
		want, err := load(*against)
		if err != nil {
			return err
		}
		return Diff(want, seen)
	}
	return nil
}

// pick chooses cases; those that stop the broker need a way to do so.
func pick(cases []Case, only string, restarts bool) (picked []Case) {
	for _, c := range cases {
		named := only == "" || slices.ContainsFunc(strings.Split(only, ","), func(s string) bool {
			return s == c.ID || strings.HasPrefix(c.Area, s)
		})
		if named && (restarts || c.Needs != Restart) {
			picked = append(picked, c)
		}
	}
	return picked
}

// runAll runs the cases: first, while the broker is small, those that need it for themselves, then the others at once.
func (e *env) runAll(cases []Case, parallel int) Seen {
	seen := Seen{}
	var mu sync.Mutex
	one := func(c Case) {
		start := time.Now()
		s := c.run(e, 4*time.Minute)
		mu.Lock()
		defer mu.Unlock()
		seen[c.ID] = plain(s)
		if why, ok := s["FAILED"]; ok {
			fmt.Printf("%s failed: %v\n", c.ID, why)
		} else if d := time.Since(start); d > time.Minute {
			fmt.Printf("%s took %v\n", c.ID, d.Round(time.Second))
		}
	}
	for _, c := range cases {
		if c.alone() {
			one(c)
		}
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, c := range cases {
		if !c.alone() {
			slots <- struct{}{}
			wg.Go(func() { one(c); <-slots })
		}
	}
	wg.Wait()
	fmt.Printf("%d cases run\n", len(seen))
	return seen
}

func (c Case) alone() bool { return c.Needs == Restart || c.Needs == Alone }

// await waits for the broker and learns what it serves.
func (e *env) await() error {
	var err error
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var c *Conn
		if c, err = dial(e.addr); err != nil {
			continue
		}
		ready := e.learn(c) && (e.plain || e.coordinators(c))
		c.Close()
		if ready {
			return nil
		}
		err = errors.New("the broker's coordinators are not ready")
	}
	return err
}

func (e *env) learn(c *Conn) bool {
	resp, err := c.Ask(0, kmsg.NewPtrApiVersionsRequest())
	if err != nil {
		return false
	}
	e.tops = map[int16]int16{}
	for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
		e.tops[k.ApiKey] = k.MaxVersion
	}
	resp, err = c.Ask(1, Metadata())
	if err != nil {
		return false
	}
	m := resp.(*kmsg.MetadataResponse)
	if len(m.Brokers) == 0 {
		return false
	}
	e.node = m.Brokers[0].NodeID
	return true
}

// Stop stops the broker, in good order or not.
func (x *X) Stop(clean bool) {
	if clean {
		x.control("stop")
	} else {
		x.control("kill")
	}
}

// Start starts the broker again and waits until it serves.
func (x *X) Start() {
	x.control("start")
	x.Must(x.env.await())
	x.C = x.Dial()
}

func (x *X) control(verb string) {
	if out, err := exec.Command("sh", "-c", x.env.ctl+" "+verb).CombinedOutput(); err != nil {
		x.Fail("%s: %v: %s", verb, err, out)
	}
}

// Dir is the folder of partition 0 of a topic.
func (t *Topic) Dir() string {
	if t.x.env.data == "" {
		t.x.Fail("needs -data")
	}
	return filepath.Join(t.x.env.data, t.Name+"-0")
}

// plain passes values through JSON, so that fresh ones equal loaded ones.
func plain(v map[string]any) (out map[string]any) {
	b, _ := json.Marshal(v)
	json.Unmarshal(b, &out)
	return out
}

func load(path string) (s Seen, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(b, &s)
}

// save writes one line a probe, sorted.
func save(path string, s Seen) error {
	var b bytes.Buffer
	b.WriteString("{")
	for i, id := range keys(s) {
		fmt.Fprintf(&b, "%s\n%s: {", comma(i), line(id))
		for j, p := range keys(s[id]) {
			fmt.Fprintf(&b, "%s\n  %s: %s", comma(j), line(p), line(s[id][p]))
		}
		b.WriteString("\n}")
	}
	b.WriteString("\n}\n")
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func line(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(v)
	return strings.TrimSpace(b.String())
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func keys[V any](m map[string]V) []string {
	ks := make([]string, 0, len(m))
	for k := range m {
		ks = append(ks, k)
	}
	sort.Strings(ks)
	return ks
}

// Diff prints what differs between two runs, field by field. Probes whose name starts with a tilde show where a broker
// may do better than the first run's: they are printed, but do not count.
func Diff(a, b Seen) error {
	differ, missing := 0, 0
	for _, id := range keys(merge(a, b)) {
		sa, oka := a[id]
		sb, okb := b[id]
		if !oka || !okb {
			missing++
			continue
		}
		lines := fields("", sa, sb)
		if len(lines) == 0 {
			continue
		}
		fmt.Println(id)
		counts := false
		for _, l := range lines {
			fmt.Println("  " + l)
			counts = counts || !strings.HasPrefix(l, "~")
		}
		if counts {
			differ++
		}
	}
	fmt.Printf("%d cases compared, %d differ, %d are in one side only\n", len(merge(a, b))-missing, differ, missing)
	if differ > 0 {
		return fmt.Errorf("%d cases differ", differ)
	}
	return nil
}

func merge[V any](a, b map[string]V) map[string]V {
	m := map[string]V{}
	for k, v := range a {
		m[k] = v
	}
	for k, v := range b {
		m[k] = v
	}
	return m
}

// fields lists the paths at which two values differ.
func fields(path string, a, b any) (out []string) {
	if reflect.DeepEqual(a, b) || better(path, a, b) {
		return nil
	}
	if ma, ok := a.(map[string]any); ok {
		if mb, ok := b.(map[string]any); ok {
			for _, k := range keys(merge(ma, mb)) {
				out = append(out, fields(join(path, k), at(ma, k), at(mb, k))...)
			}
			return out
		}
	}
	la, oka := a.([]any)
	lb, okb := b.([]any)
	if oka && okb && len(la) == len(lb) {
		for i := range la {
			out = append(out, fields(fmt.Sprintf("%s[%d]", path, i), la[i], lb[i])...)
		}
		return out
	}
	return []string{fmt.Sprintf("%s: %s | %s", path, show(a), show(b))}
}

// better tells whether the second of two values is no worse than the first: a named error where the first has none of
// its own, or a message where the first has none.
func better(path string, a, b any) bool {
	if strings.HasSuffix(path, "ErrorMessage") {
		return b == "(text)" && (a == absent{} || a == "")
	}
	text, ok := b.(string)
	return ok && a == Code(-1) && text != "0" && len(text) > 0 && text[0] >= '0' && text[0] <= '9'
}

type absent struct{}

func at(m map[string]any, k string) any {
	if v, ok := m[k]; ok {
		return v
	}
	return absent{}
}

func show(v any) string {
	if v == (absent{}) {
		return "(absent)"
	}
	return line(v)
}

func join(path, k string) string {
	if path == "" {
		return k
	}
	return path + "." + k
}

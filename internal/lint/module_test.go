package lint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	collection = regexp.MustCompile(`(?:NewPrefix|at)\((\d+)\), "(\w+)"`)
	rpc        = regexp.MustCompile(`(?m)^\s*rpc (\w+)\(`)
	event      = regexp.MustCompile(`(?m)^message (Event\w+)`)
	stateRow   = regexp.MustCompile("(?m)^\\| `(0x[0-9a-f]{2})` \\| `(\\w+)` \\|")
	row        = regexp.MustCompile("(?m)^\\| `((?:Msg|Event)\\w+)` \\|")
)

// TestModulePages holds the page of each module of the chain to its code: the prefixes of its store, its messages, its
// events.
func TestModulePages(t *testing.T) {
	state := map[string]map[string]bool{}
	for _, s := range sources(t) {
		rest, ok := strings.CutPrefix(s.name, "chain/x/")
		if !ok || s.test() || s.generated() {
			continue
		}
		module := strings.SplitN(rest, "/", 2)[0]
		for _, m := range collection.FindAllStringSubmatch(string(s.text), -1) {
			if state[module] == nil {
				state[module] = map[string]bool{}
			}
			state[module][m[1]+" "+m[2]] = true
		}
	}
	if len(state) != 11 {
		t.Fatalf("%d modules have a store", len(state))
	}
	for module, want := range state {
		page := read(t, "chain/x/"+module+"/README.md")
		have := map[string]bool{}
		for _, m := range stateRow.FindAllStringSubmatch(page, -1) {
			have[decimal(t, m[1])+" "+m[2]] = true
		}
		for _, file := range []string{"tx", "event"} {
			text := read(t, "chain/proto/starling/"+module+"/v1/"+file+".proto")
			for _, m := range rpc.FindAllStringSubmatch(text, -1) {
				want["Msg"+m[1]] = true
			}
			for _, m := range event.FindAllStringSubmatch(text, -1) {
				want[m[1]] = true
			}
		}
		for _, m := range row.FindAllStringSubmatch(page, -1) {
			have[m[1]] = true
		}
		for k := range want {
			if !have[k] {
				t.Errorf("chain/x/%s/README.md lacks %q", module, k)
			}
		}
		for k := range have {
			if !want[k] {
				t.Errorf("chain/x/%s/README.md has %q, which the module has not", module, k)
			}
		}
	}
}

// read returns a file of the module, or nothing if there is none: a module may have no events.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

func decimal(t *testing.T, hex string) string {
	t.Helper()
	n, err := strconv.ParseUint(hex, 0, 8)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatUint(n, 10)
}

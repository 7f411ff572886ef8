package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/starling-network/starling/cmd/starling/version"
)

// Every variant of a sweep is checked before the first is played, and an error says which it is of. A key that does not
// go with a variant can be taken out.
func TestSweepsAreCheckedFirst(t *testing.T) {
	file, dir := writeJob(t, ""), filepath.Join(t.TempDir(), "sweep")
	code, stdout, stderr := starling(t, "sim", file, "--sweep", "strategy.sync_steps=4,5,7", "--dir", dir)
	if code != 2 || stdout != "" || !strings.Contains(stderr, "with strategy.sync_steps=5: ") ||
		!strings.Contains(stderr, "with strategy.sync_steps=7: ") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was played: %v", err)
	}
	methods := []string{"sim", file, "--modelled", "--link", "lan", "--set", "strategy.sync_steps=null", "--sweep",
		"strategy.method=diloco,allreduce", "--dir", dir, "-o", "json"}
	if code, stdout, stderr := starling(t, methods...); code != 0 || strings.Count(stdout, `"state_root"`) != 2 {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = starling(t, "job", "compare", "000", "001", "--dir", dir)
	if code != 0 || !regexp.MustCompile(`method +diloco +allreduce`).MatchString(stdout) {
		t.Errorf("what tells the variants apart: exit %d\n%s%s", code, stdout, stderr)
	}
}

// The error of a command that a group does not have names it, and similar commands.
func TestUnknownCommands(t *testing.T) {
	for args, want := range map[string]string{
		"job nonsense": `there is no command "nonsense" of starling job`, "model srve x": "did you mean serve?",
		"validator bonds --home x": `there is no command "bonds" of starling validator; did you mean bond?`,
		"wroker up --home x":        `there is no command "wroker"`,
		"worker up --hmoe x":        "unknown flag: --hmoe",
		"version now":               `"now" is given, and starling version takes no argument`,
		"job verify":                "0 arguments given, wanted", "train a b": "2 arguments given, wanted JOB.yaml",
	} {
		if code, _, stderr := starling(t, strings.Fields(args)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d\n%s", args, code, stderr)
		}
	}
	if code, stdout, _ := starling(t, "--version"); code != 0 || !strings.Contains(stdout, version.Binary()) {
		t.Errorf("--version: exit %d, %q", code, stdout)
	}
}

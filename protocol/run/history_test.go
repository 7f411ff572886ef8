package run

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/run/progress"
)

// The states and events that random messages lead to are part of the protocol: testdata/history-N.txt holds a digest of
// all of them for each script, in a run of version N of the rules. Those of earlier versions stay as they are, since
// runs under way keep their rules. go test ./protocol/run -rewrite writes that of the newest version again.
func TestHistories(t *testing.T) {
	for rules := range progress.NewestRules + 1 {
		if rules > 0 && rules < progress.NewestRules && !*everything {
			continue
		}
		path := filepath.Join("testdata", fmt.Sprintf("history-%d.txt", rules))
		got := histories(t, rules)
		if *rewrite && rules == progress.NewestRules {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs:\n%s", path, got)
		}
	}
}

// histories plays the scripts in runs of these rules.
func histories(t *testing.T, rules progress.Rules) string {
	r := rand.New(rand.NewPCG(3, 3))
	var b strings.Builder
	for i := range 60 {
		script := make([]byte, 1500)
		for k := range script {
			script[k] = byte(r.Uint32())
		}
		if i%2 == 1 { // mostly messages that advance the run
			for k := 0; k < len(script); k += 3 {
				script[k] = []byte{0, 0, 1, 1, 1, 6, 6, 7, 9, 10, 11, 12, 13, 13, 14, 15}[r.IntN(16)]
			}
		}
		script[0] = byte(i/2) << 4
		history := playTolerant
		if i%3 > 0 {
			history = play
		}
		fmt.Fprintf(&b, "%2d %s\n", i, history(t, rules, script))
	}
	return b.String()
}

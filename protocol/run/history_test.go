package run

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The states and events that random messages lead to are part of the protocol: testdata/history.txt holds a digest of
// all of them for each script. go test ./protocol/run -rewrite writes it again.
func TestHistories(t *testing.T) {
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
		d := history(t, script)
		fmt.Fprintf(&b, "%2d %s\n", i, d)
	}
	path := filepath.Join("testdata", "history.txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s differs:\n%s", path, b.String())
	}
}

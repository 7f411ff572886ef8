package node_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/node/loop/replay"
	"github.com/starling-network/starling/node/verify"
	"github.com/starling-network/starling/web/failure"
)

// The record of another run in the folder of a run is refused before the network is asked about either.
func TestRecordOfAnotherRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "loop-a")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for order, want := range map[string]bool{"loop-b": true, "": true, "../loop-a": true, "loop-a": false} {
		text := fmt.Appendf(nil, `{"order": %q}`, order)
		if err := os.WriteFile(filepath.Join(dir, "loop.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := replay.Run(t.Context(), dir, "not a network", verify.Options{})
		known := (*failure.Error)(nil)
		if err == nil || (errors.As(err, &known) && known.Code == "RECORD_OTHER") != want {
			t.Errorf("the record of %q is answered with %v", order, err)
		}
	}
}

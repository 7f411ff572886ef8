package listings

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/internal/prooftest"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/sim/random/wares"
)

var rewrite = flag.Bool("rewrite", false, "make testdata again, with other random numbers")

// The proof that is drawn holds, and is about the files that all listings have.
func TestTheProofHolds(t *testing.T) {
	if *rewrite {
		remake(t)
	}
	v, err := proof.NewVerifier(provenKey)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proof.Decode(provenFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(p); err != nil || p.Statement.Base != wares.Index || p.Statement.Adapter != wares.Index {
		t.Errorf("%v, about %s", err, p.Statement.Base)
	}
}

// remake makes the key and the proof.
func remake(t *testing.T) {
	key, prove := prooftest.New(t)
	made := prove(wares.Index, wares.Index, "", 1)
	for name, data := range map[string][]byte{"verifying.key": key, "adapter.proof": made} {
		if err := os.WriteFile(filepath.Join("testdata", name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Skip("testdata was made again; play the test once more")
}

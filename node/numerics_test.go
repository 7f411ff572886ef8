package node

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/server/refusal"
)

// A run whose order was refused because of the version of the numerics is prepared again, and so is an order of a
// server; after another refusal the run stays as it is.
func TestARunOfAnotherVersionIsPreparedAgain(t *testing.T) {
	for code, again := range map[uint32]bool{17: false, 18: true} {
		out, err := rundir.OpenOutDir(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Start(jobtest.Small(t), rundir.RunFile{ID: "job", Numerics: 1}); err != nil {
			t.Fatal(err)
		}
		refused := fmt.Errorf("order: %w", transaction.Refusal("market", code, "refused"))
		if err := forget(out, refused); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(out.File(rundir.FileRun)); errors.Is(err, os.ErrNotExist) != again {
			t.Errorf("code %d: %v", code, err)
		}
		if refusal.Final(refused) == again {
			t.Errorf("code %d is final: %t", code, !again)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

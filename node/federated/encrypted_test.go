package federated_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/owner"
)

// Owners whose updates are encrypted end with the model of owners whose updates are masked, to the bit.
func TestEncryptedUpdatesMakeTheSameModel(t *testing.T) {
	var models [2][]byte
	for k, updates := range []string{"masked", "encrypted"} {
		dir := t.TempDir()
		c, s := coordinator(t, dir, "federated.updates="+updates, "federated.method=scaffold")
		var all []owner.Options
		for i := range 4 {
			all = append(all, one(t, i, s.URL))
		}
		r := joined(t, c, all, func(i int, r *owner.Result, err error) {
			if err != nil || r.Sent != 3 {
				t.Errorf("owner %d: %+v, %v", i, r, err)
			}
		})
		if r.Rounds != 3 || r.Void != 0 || r.MinCohort != 4 || r.Faults != 0 {
			t.Errorf("%s: %+v", updates, r)
		}
		if says := strings.Contains(fmt.Sprint(r.Assumptions), "learning with errors"); says != (k == 1) {
			t.Errorf("%s: %q", updates, r.Assumptions)
		}
		var err error
		if models[k], err = os.ReadFile(filepath.Join(dir, federated.FileCheckpoint)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(models[0], models[1]) {
		t.Error("the checkpoints differ")
	}
}

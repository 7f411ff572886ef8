package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/node/rundir"
)

func TestOverheadCountsTheRoundsAfterTheWarmUp(t *testing.T) {
	dir := t.TempDir()
	for name, lines := range map[string]string{rundir.FileMetrics: `{"kind":"round","round":0}
{"kind":"step","round":1,"step":1}
{"kind":"round","round":1,"seconds":9}
{"kind":"step","round":2,"step":2,"seconds":7}
{"kind":"round","round":2,"seconds":2}
{"kind":"round","round":3,"seconds":3}
`, rundir.FileReceipts: `{"kind":"audit","round":1}
{"kind":"work","round":2}
{"kind":"audit","round":2}
{"kind":"audit","round":3}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if s, audits, err := afterWarmup(dir, 1); err != nil || s != 5 || audits != 2 {
		t.Errorf("%v seconds, %d audits, %v", s, audits, err)
	}
	if r := (Overhead{With: []float64{12, 11}, Without: []float64{10, 13}}).Ratio(); r != 1.1 {
		t.Errorf("ratio %v", r)
	}
	for _, opt := range []OverheadOptions{{Repeat: 1}, {Audited: 0.1}, {Audited: 2, Repeat: 1},
		{Audited: 0.1, Repeat: 1, WarmUp: -1}} {
		if _, err := MeasureOverhead(t.Context(), opt); err == nil {
			t.Errorf("%+v is taken", opt)
		}
	}
}

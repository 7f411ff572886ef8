package api

import (
	"bytes"
	"encoding/csv"
	"testing"
)

// A row has what its metric has, under the names of the first.
func TestWriteCSV(t *testing.T) {
	loss, norm := 5.5, 0.75
	var b bytes.Buffer
	if err := WriteCSV(&b, []Metric{{Kind: "round", EvalLoss: &loss},
		{Kind: "step", Round: 1, Step: 3, Loss: 0.1, GradNorm: &norm, PaidUzen: 2_500_000,
			Coin: &Coin{Denom: "ibc/A", Symbol: "usdc", Decimals: 6}}}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%q, %v", rows, err)
	}
	for i, want := range []map[string]string{{"kind": "round", "step": "0", "eval_loss": "5.5", "grad_norm": "",
		"agreement": "", "coin": "ZEN"}, {"kind": "step", "round": "1", "step": "3", "loss": "0.1", "eval_loss": "",
		"grad_norm": "0.75",
		"paid_uzen": "2500000", "coin": "USDC"}} {
		for k, name := range rows[0] {
			if v, ok := want[name]; ok && rows[i+1][k] != v {
				t.Errorf("row %d: %s is %q, want %q", i, name, rows[i+1][k], v)
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("no columns %v", want)
		}
	}
}

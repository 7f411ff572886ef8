package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/checked/signer"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/openai"
)

// Answers that were proven with a model are of it; with another prompt, or without proofs, they are refused.
func TestModelCheck(t *testing.T) {
	dir, file := llamaFolder(t), filepath.Join(t.TempDir(), "answers.jsonl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"prompt":[1,2,3],"answer":[4,5,6,7,8,9,10,11]}` + "\n")
	code, proven, errs := starling(t, "model", "check", dir, file, "--prove")
	if code != 0 || strings.Count(proven, "\n") != 1 {
		t.Fatalf("exit %d: %s%s", code, proven, errs)
	}
	for _, c := range []struct {
		text, precision string
		exit            int
		says            string
	}{
		{proven, "bf16", 0, "8 tokens checked with tolerance: 0 refused"},
		{proven, "fp32", 0, "0 refused"},
		{strings.Replace(proven, "[1,2,3]", "[3,1,2]", 1), "fp32", 10, "PROOF_REFUSED"},
		{`{"prompt":[1,2,3],"answer":[4]}`, "bf16", 10, "answer 1 is refused: 0 proofs, and not 1"},
		{`{"prompt":[1,2,3],"answer":[-4]}`, "bf16", 10, "token -4 of"},
		{`{"prompt":"a"}`, "bf16", 10, "answer 1 is refused: json"},
	} {
		write(c.text)
		code, out, errs := starling(t, "model", "check", dir, file, "--precision", c.precision)
		if code != c.exit || !strings.Contains(out+errs, c.says) {
			t.Errorf("%s of %.60s: exit %d: %s%s", c.precision, c.text, code, out, errs)
		}
	}
}

// An answer that cannot be computed is refused, and the others of the file are checked.
func TestOneAnswerHidesNoOther(t *testing.T) {
	dir, file := llamaFolder(t), filepath.Join(t.TempDir(), "answers.jsonl")
	good := `{"prompt":[1,2,3],"answer":[4,5,6,7,8,9,10,11]}` + "\n"
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	_, proven, _ := starling(t, "model", "check", dir, file, "--prove")
	wrong := `{"prompt":[3,2,1],"answer":[4,5,6,7,8,9,10,11]}` + "\n" // without proofs: it is refused
	if err := os.WriteFile(file, []byte(proven+wrong+`{"prompt":[1],"answer":[-4],"proofs":[]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := starling(t, "model", "check", dir, file)
	if code != 10 || out == "" {
		t.Errorf("exit %d, and of two answers that were checked it says %q; %s", code, out, errs)
	}
}

// A receipt of an answer that the model gave passes, and one with another token is refused with its place.
func TestModelCheckOfReceipts(t *testing.T) {
	dir, file := llamaFolder(t), filepath.Join(t.TempDir(), "receipts.jsonl")
	e, err := serve.Open(dir, serve.Options{Name: "m", Checked: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	out, err := e.Generate(t.Context(), openai.Request{Model: "m", Tokens: []int32{1, 2, 3}, Max: 8, Temperature: 1,
		Seed: 4, Likely: -1}, func(openai.Piece) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	of, err := pretrained.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := checked.New(of)
	if err != nil {
		t.Fatal(err)
	}
	sign := func() (encoded []byte) {
		signed, err := signer.Signer{Model: m, Chain: "c", Number: 1, Key: wallet.KeyFromSeed([32]byte{1})}.Sign(out.Drawn, 5)
		if err != nil {
			t.Fatal(err)
		}
		return signed.Encode()
	}
	good := sign()
	forged := append([]byte{}, good...)
	forged[len(forged)-1] ^= 1
	out.Drawn.Answer[1] ^= 1
	wrong := sign()
	for says, all := range map[string][][]byte{
		"1 answers of":                    {good},
		"answer 2 is refused: token 1 of": {good, wrong},
		"answer 1 is refused: answer: the receipt is not signed": {forged},
	} {
		var lines strings.Builder
		for _, s := range all {
			if err := json.NewEncoder(&lines).Encode(map[string][]byte{"receipt": s}); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := starling(t, "model", "check", dir, file, "--receipts")
		if (code == 0) != (says == "1 answers of") || !strings.Contains(out, says) {
			t.Errorf("exit %d, not %q: %s%s", code, says, out, errs)
		}
	}
	if code, out, _ := starling(t, "model", "check", dir, file, "--receipts", "-o", "json"); !strings.Contains(out,
		`"refused"`) {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, _, errs := starling(t, "model", "check", dir, file, "--receipts", "--prove"); code != 2 {
		t.Errorf("exit %d: %s", code, errs)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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

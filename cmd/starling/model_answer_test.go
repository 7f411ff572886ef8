package main

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/tensor"
)

func tensorFile(t *testing.T, name string, tensors map[string]*tensor.Tensor) string {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.EncodeAs(&b, slices.Sorted(maps.Keys(tensors)), tensors, nil, nil); err != nil {
		t.Fatal(err)
	}
	writeFile(t, name, b.Bytes())
	return name
}

func networkFolder(t *testing.T, seed uint64) string {
	t.Helper()
	n, err := vision.Parse(vision.MLP, map[string]any{"hidden_sizes": []any{4}}, picture.Size{Rows: 3, Columns: 2,
		Channels: 1}, []string{"cat", "dog", "owl"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.json"), n.JSON())
	tensorFile(t, filepath.Join(dir, "model.safetensors"), architecture.Init(n.Tensors(), seed))
	return dir
}

func greyImage(t *testing.T, rows, columns int) string {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, columns, rows))
	for i := range img.Pix {
		img.Pix[i] = color.Gray{Y: uint8(31 * i)}.Y
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "image.png")
	writeFile(t, name, b.Bytes())
	return name
}

// Answers of networks and sums of updates are proven, checked by parties that know more and more, and exported; files
// of one kind are none of another.
func TestModelProofKinds(t *testing.T) {
	onlyLong(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	model, other, picture := networkFolder(t, 1), networkFolder(t, 2), greyImage(t, 3, 2)
	for i, name := range []string{"a", "b"} {
		x := tensor.New(tensor.Make(tensor.Float32, 3))
		copy(x.F32(), []float32{0.1, float32(i), -0.3})
		tensorFile(t, at(name+".safetensors"), map[string]*tensor.Tensor{"w": x})
	}
	answer, sum := at("answer.proof"), at("sum.proof")
	commit := func(name, place string, more ...string) []string {
		return append([]string{"commit", at(name + ".safetensors"), "--place", place, "--clip", "2", "--keys", at("sums"),
			"--to", at(name + ".update")}, more...)
	}
	add := []string{"sum", at("b.update"), at("a.update"), "--model", model, "--part", "round 1", "--keys", at("sums"),
		"--to", sum}
	checkAnswer := []string{"check", answer, "--keys", at("networks"), "--secret", at("secret"), "--model"}
	for _, c := range []struct {
		exit int
		says string
		args []string
	}{
		{2, "PROOF_SHAPE", []string{"setup", "start", at("x"), "--widths", "6,1"}},
		{2, "PROOF_SHAPE", []string{"setup", "start", at("x"), "--updates", "1", "--length", "4"}},
		{1, "none of the others", []string{"setup", "start", at("x"), "--widths", "6,4,3", "--leaves", "2"}},
		{0, "a network of 6 to 4 to 3", []string{"setup", "start", at("networks"), "--widths", "6,4,3", "--alone"}},
		{0, "sums of 2 updates of 4", []string{"setup", "start", at("sums"), "--updates", "2", "--length", "4", "--alone"}},
		{2, "--keys and --to", []string{"infer", model, picture}},
		{3, "NO_MODEL", []string{"infer", dir, picture, "--keys", at("networks"), "--to", answer}},
		{10, "PROOF_OTHER", []string{"infer", model, greyImage(t, 2, 3), "--keys", at("networks"), "--to", answer}},
		{2, "PROOF_KEY", []string{"infer", model, picture, "--keys", at("sums"), "--to", answer}},
		{0, "the network says", []string{"infer", model, picture, "--keys", at("networks"), "--to", answer, "--secret",
			at("secret")}},
		{0, "has the highest score", []string{"check", answer, "--key", at("networks/verifying.key")}},
		{0, "the commitment is to these", append(checkAnswer, model)},
		{10, "PROOF_OTHER", append(checkAnswer, other)},
		{10, "PROOF_INVALID", []string{"check", answer, "--key", at("sums/verifying.key")}},
		{2, "--keys is needed", []string{"check", answer, "--key", at("networks/verifying.key"), "--model", model}},
		{0, "snarkjs groth16 verify", []string{"export", answer, "--key", at("networks/verifying.key"), "--to", at("js")}},
		{0, "commitment", commit("a", "1")},
		{0, "commitment", commit("b", "2", "--weight", "0.5")},
		{2, "--weight", commit("b", "2", "--weight", "2")},
		{2, "PROOF_STATEMENT", commit("b", "3")},
		{2, "NO_UPDATE", []string{"commit", picture, "--place", "1", "--clip", "2", "--keys", at("sums"), "--to", at("x")}},
		{2, "NO_UPDATE", []string{"sum", at("a.update"), at("a.update"), "--model", model, "--part", "x", "--keys",
			at("sums"), "--to", sum}},
		{2, "NO_UPDATE", []string{"sum", at("a.update"), picture, "--model", model, "--part", "x", "--keys", at("sums"),
			"--to", sum}},
		{0, "a proof of", append(add, "--mean", at("mean.safetensors"))},
		{0, "4 sums of round 1 under 2 commitments", []string{"check", sum, "--key", at("sums/verifying.key")}},
		{0, "a commitment is to it", []string{"check", sum, "--keys", at("sums"), "--committed", at("b.update")}},
		{10, "PROOF_OTHER", []string{"check", answer, "--keys", at("networks"), "--committed", at("b.update")}},
		{0, "commitment", commit("b", "2")},
		{10, "PROOF_OTHER", []string{"check", sum, "--keys", at("sums"), "--committed", at("b.update")}},
	} {
		code, out, errs := starling(t, append([]string{"model", "proof"}, c.args...)...)
		if code != c.exit || !strings.Contains(out+errs, c.says) {
			t.Errorf("%v: exit %d, wanted %d and %q: %s%s", c.args, code, c.exit, c.says, out, errs)
		}
	}
	code, out, errs := starling(t, "model", "proof", "check", sum, "--key", at("sums/verifying.key"), "-o", "json")
	var shown struct {
		Kind string  `json:"kind"`
		Sums []int64 `json:"sums"`
	}
	if err := json.Unmarshal([]byte(out), &shown); code != 0 || err != nil || shown.Kind != "aggregation" ||
		len(shown.Sums) != 4 || shown.Sums[3] != 3<<21 {
		t.Errorf("exit %d, %+v, %v: %s", code, shown, err, errs)
	}
}

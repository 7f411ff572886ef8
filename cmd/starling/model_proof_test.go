package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/cmd/starling/catalog"
	"github.com/starling-network/starling/cmd/starling/proof"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/node/pretrained"
)

// adapterFolder is a folder with an adapter of rank 2 of the queries of a model, whose B is drawn, too.
func adapterFolder(t *testing.T, base string, seed uint64) string {
	t.Helper()
	m, err := pretrained.Load(base)
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.Config.Adapt(architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{"q_proj", "down_proj"}})
	if err != nil {
		t.Fatal(err)
	}
	tensors := c.InitAdapters(seed)
	for name, x := range tensors {
		if strings.HasSuffix(name, architecture.UpSuffix) {
			for i := range x.F32() {
				x.F32()[i] = float32(i%7) - 3
			}
		}
	}
	config, err := c.AdapterJSON()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := safetensors.EncodeAs(&b, slices.Sorted(maps.Keys(tensors)), tensors, nil, nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "adapter_config.json"), config)
	writeFile(t, filepath.Join(dir, "adapter_model.safetensors"), b.Bytes())
	return dir
}

const provenLayer = "model.layers.0.self_attn.q_proj"

// proofFiles is a proof about an adapter, and what it was made of.
type proofFiles struct{ base, adapter, keys, file, secret string }

func makeProof(t *testing.T) proofFiles {
	t.Helper()
	dir := t.TempDir()
	p := proofFiles{base: llamaFolder(t), keys: filepath.Join(dir, "setup"), file: filepath.Join(dir, "q.proof"),
		secret: filepath.Join(dir, "secret")}
	p.adapter = adapterFolder(t, p.base, 5)
	for _, args := range [][]string{
		{"setup", "start", p.keys, "--rank", "2", "--in", "64", "--out", "64", "--alone"},
		{"make", p.adapter, "--base", p.base, "--layer", provenLayer, "--keys", p.keys, "--to", p.file, "--secret", p.secret},
	} {
		if code, out, errs := starling(t, append([]string{"model", "proof"}, args...)...); code != 0 {
			t.Fatalf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
	return p
}

// A proof is made and checked, in parts by parties that know more and more, and is about no other folder.
func TestModelProof(t *testing.T) {
	onlyLong(t)
	p := makeProof(t)
	key, other := filepath.Join(p.keys, "verifying.key"), adapterFolder(t, p.base, 6)
	bad, text := filepath.Join(t.TempDir(), "bad.proof"), filepath.Join(t.TempDir(), "text.proof")
	data, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, bad, bytes.ReplaceAll(data, []byte("q_proj"), []byte("k_proj")))
	check := []string{"check", p.file, "--key", key}
	buyer := []string{"check", p.file, "--keys", p.keys, "--base", p.base, "--secret", p.secret, "--adapter"}
	for _, c := range []struct {
		exit int
		says string
		args []string
	}{
		{0, provenLayer, []string{"layers", p.adapter, "--base", p.base}},
		{0, "the keys for rank 2, 64 to 64", []string{"setup", "verify", p.keys}},
		{0, "base model: not checked", check},
		{0, "text: follows from the commitment", append(check, "--base", p.base)},
		{0, "made for: no account", check},
		{0, "adapter: the commitment is to these weights", append(buyer, p.adapter)},
		{10, "PROOF_OTHER", append(buyer, other)},
		{10, "PROOF_OTHER", append(check, "--base", p.adapter)},
		{10, "PROOF_INVALID", []string{"check", bad, "--key", key}},
		{2, "NO_PROOF", []string{"check", key, "--key", key}},
		{2, "PROOF_KEY", []string{"check", p.file, "--key", p.file}},
		{2, "--key or --keys", []string{"check", p.file}},
		{2, "--base, --layer", []string{"make", p.adapter}},
		{3, "NO_MODEL", []string{"layers", p.keys, "--base", p.base}},
		{10, "PROOF_OTHER", []string{"make", p.adapter, "--base", p.base, "--layer", "model.layers.0.mlp.down_proj2",
			"--keys", p.keys, "--to", bad}},
		{2, "PROOF_SHAPE", []string{"setup", "start", t.TempDir(), "--rank", "2", "--in", "64", "--out", "1"}},
		{5, "SETUP_PHASE", []string{"setup", "contribute", p.keys}},
		{0, "192", []string{"make", p.adapter, "--base", p.base, "--layer", provenLayer, "--keys", p.keys, "--to", text,
			"--secret", p.secret, "--text", "hello"}},
		{0, "text: chosen by the maker", []string{"check", text, "--key", key, "--base", p.base}},
		{0, "192", []string{"make", p.adapter, "--base", p.base, "--layer", provenLayer, "--keys", p.keys, "--to", text,
			"--secret", p.secret, "--tokens", "2"}},
		{0, "of too few tokens", []string{"check", text, "--key", key, "--base", p.base}},
	} {
		code, out, errs := starling(t, append([]string{"model", "proof"}, c.args...)...)
		if code != c.exit || !strings.Contains(out+errs, c.says) {
			t.Errorf("%v: exit %d, wanted %d and %q: %s%s", c.args, code, c.exit, c.says, out, errs)
		}
	}
	to := t.TempDir()
	if code, out, errs := starling(t, "model", "proof", "export", p.file, "--key", key, "--to", to); code != 0 ||
		!strings.Contains(out, "snarkjs groth16 verify") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for _, name := range []string{"verification_key.json", "proof.json", "public.json"} {
		if text, err := os.ReadFile(filepath.Join(to, name)); err != nil || !json.Valid(text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// proves has the network verify a proof about a listed adapter, and shows it in the lineage.
func (l *ledger) proves() {
	on := []string{"--network", l.network}
	p := makeProof(l.t)
	var base, adapter catalog.Listed
	add := func(into *catalog.Listed, folder string, more ...string) {
		l.must(json.Unmarshal([]byte(l.says("", l.as("worker", append([]string{"model", "catalog", "add", folder, "--title",
			"Proven", "--licence", "MIT", "-o", "json"}, more...)...)...)), into))
	}
	number := func(x catalog.Listed) string { return jsonNumber(l.t, x.Listing) }
	add(&base, p.base)
	add(&adapter, p.adapter, "--parent", number(base))
	key := filepath.Join(p.keys, "verifying.key")
	for file, owner := range map[string]string{p.file: base.Owner, p.file + ".other": "another"} {
		l.says("192", "model", "proof", "make", p.adapter, "--base", p.base, "--layer", provenLayer, "--keys", p.keys, "--to",
			file, "--secret", p.secret, "--owner", owner)
	}
	var made proof.Made
	l.must(json.Unmarshal([]byte(l.says("", "model", "proof", "check", p.file, "--key", key, "-o", "json")), &made))
	publish := func(name, listing, parent string) []string {
		return l.as(name, "model", "proof", "publish", p.file, "--listing", listing, "--parent", parent, "--key", made.Key)
	}
	copied := l.as("worker", "model", "proof", "publish", p.file+".other", "--listing", number(adapter), "--parent",
		number(base), "--key", made.Key)
	l.refuses(1, "CATALOG_20", publish("worker", number(adapter), number(base))...)
	l.says(made.Key, l.as("consumer", "model", "proof", "register", key)...)
	l.refuses(1, "CATALOG_22", l.as("worker", "model", "proof", "register", key)...)
	l.refuses(1, "CATALOG_21", publish("consumer", number(adapter), number(base))...)
	l.refuses(1, "CATALOG_19", publish("worker", number(adapter), "1")...)
	l.refuses(1, "CATALOG_19", publish("worker", number(base), number(adapter))...)
	l.refuses(1, "CATALOG_19", copied...)
	l.says("the network verified it in block", publish("worker", number(adapter), number(base))...)
	l.refuses(1, "CATALOG_22", publish("worker", number(adapter), number(base))...)
	l.says("1 layer, 1 contribution claimed", append(on, "model", "catalog", "lineage", number(adapter))...)
	got := filepath.Join(l.t.TempDir(), "verifying.key")
	l.says("of 1 contribution", append(on, "model", "proof", "key", made.Key, "--to", got)...)
	l.says("the proof holds", "model", "proof", "check", p.file, "--key", got)
	l.says(provenLayer, append(on, "model", "proof", "list", "--listing", number(adapter))...)
}

func jsonNumber(t *testing.T, n uint64) string {
	t.Helper()
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

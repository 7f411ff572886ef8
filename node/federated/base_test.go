package federated_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/owner"
)

// Owners train an adapter on a base model that each of them has: one factor of it in each round. The result is a model
// folder, and the adapter.
func TestOwnersTrainAdapter(t *testing.T) {
	base := t.TempDir()
	c, s := coordinator(t, base)
	var all []owner.Options
	for i := range 4 {
		all = append(all, one(t, i, s.URL))
	}
	joined(t, c, all, func(i int, r *owner.Result, err error) {
		if err != nil {
			t.Errorf("owner %d: %v", i, err)
		}
	})
	for _, set := range [][]string{{"model={adapter: {lora: {r: 2}}}", "federated.noise={multiplier: 0.00001}"},
		{"model={}", "strategy.method=diloco"}} {
		dir := t.TempDir()
		c, s := coordinator(t, dir, append(set, "model.base_model="+base, "training.learning_rate=1e-2")...)
		if set[0] != "model={}" {
			other := one(t, 5, s.URL)
			other.Base = altered(t, base)
			if _, err := owner.Join(context.Background(), other); !errors.Is(err, owner.ErrJob) {
				t.Errorf("an owner of another base model: %v", err)
			}
		}
		t.Chdir(filepath.Dir(base))
		said := "" // by the first owner
		for i, o := range all {
			o.URL, o.Base = s.URL, filepath.Base(base)
			if i == 0 {
				o.Say = func(text string) { said += text + "\n" }
			}
			all[i] = o
		}
		r := joined(t, c, all, func(i int, r *owner.Result, err error) {
			if err != nil || r.Sent != 3 {
				t.Errorf("owner %d: %+v, %v", i, r, err)
			}
		})
		if size := "an update of at most 288 weights each"; set[0] != "model={}" && !strings.Contains(said, size) {
			t.Errorf("factors have 288 and 224 weights, and the owner says %s", said)
		}
		if r.Rounds != 3 || r.Faults != 0 || !(*r.FinalLoss < *r.FirstLoss) {
			t.Errorf("%s: %+v: loss %v, before %v", set, r, *r.FinalLoss, *r.FirstLoss)
		}
		if _, err := folder.Read(os.DirFS(dir)); err != nil {
			t.Errorf("%s: %v", set, err)
		}
		_, err := os.Stat(filepath.Join(dir, "adapter", "adapter_model.safetensors"))
		if (err == nil) != strings.Contains(set[0], "lora") {
			t.Errorf("%s: the adapter: %v", set, err)
		}
	}
}

// altered is a copy of a model folder with another bit in its weights.
func altered(t *testing.T, of string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"config.json", "tokenizer.json", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(of, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "model.safetensors" {
			b[len(b)-1] ^= 1
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A classifier is an adapter of a base model and new scores, and each example of an owner is protected in the steps of
// the factor whose turn it is.
func TestOwnersTrainClassifierOnBase(t *testing.T) {
	base, dir := t.TempDir(), t.TempDir()
	c, s := coordinator(t, base, "federated.owners=3", "training.max_steps=4")
	var all []owner.Options
	for i := range 3 {
		all = append(all, one(t, i, s.URL))
	}
	joined(t, c, all, func(i int, _ *owner.Result, err error) {
		if err != nil {
			t.Errorf("owner %d: %v", i, err)
		}
	})
	c, s = coordinatorOfFile(t, labelled, func(data string) { moods(t, data, 40) }, federated.Options{Dir: dir},
		"model={adapter: {lora: {r: 2}}}", "model.base_model="+base, "training.max_steps=8")
	for i := range all {
		o := one(t, i, s.URL)
		o.Data, o.Base = t.TempDir(), base
		moods(t, o.Data, 40)
		all[i] = o
	}
	r := joined(t, c, all, func(i int, r *owner.Result, err error) {
		if err != nil || r.Sent != 2 || r.Example == nil {
			t.Errorf("owner %d: %+v, %v", i, r, err)
		}
	})
	if r.Rounds != 2 || r.Example == nil || r.FinalLoss == nil {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(dir, "adapter", "adapter_model.safetensors")); err != nil {
		t.Error(err)
	}
}

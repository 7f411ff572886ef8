package trainer

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/modeltest"
	"github.com/starling-network/starling/web/tinker"
)

// TestLayers: the layers that have adapters, by the names of the interface.
func TestLayers(t *testing.T) {
	gpt2, llama := modeltest.GPT2(), modeltest.With(modeltest.Llama(), "tie_word_embeddings", false)
	for _, c := range []struct {
		architecture string
		raw          map[string]any
		create       tinker.Create
		want         string // last parts of the names of the layers of one block, and of the output layer
	}{
		{architecture.GPT2, gpt2, tinker.Create{Rank: 1, Attention: true}, "attn.c_attn attn.c_proj"},
		{architecture.GPT2, gpt2, tinker.Create{Rank: 1, Feed: true}, "mlp.c_fc mlp.c_proj"},
		{architecture.GPT2, gpt2, tinker.Create{Rank: 1, Feed: true, Unembeds: true}, "mlp.c_fc mlp.c_proj"},
		{architecture.GPT2, gpt2, tinker.Create{Rank: 1, Unembeds: true}, ""},
		{architecture.Llama, llama, tinker.Create{Rank: 1, Attention: true, Feed: true, Unembeds: true},
			"lm_head mlp.down_proj mlp.gate_proj mlp.up_proj " +
				"self_attn.k_proj self_attn.o_proj self_attn.q_proj self_attn.v_proj"},
		{architecture.Llama, llama, tinker.Create{Rank: 1, Unembeds: true}, "lm_head"},
	} {
		config, err := architecture.Parse(c.architecture, c.raw)
		if err != nil {
			t.Fatal(err)
		}
		adapted, err := (&Trainer{config: config}).adapted(c.create)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s %+v is not refused", c.architecture, c.create)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %+v: %v", c.architecture, c.create, err)
			continue
		}
		var names []string
		for _, n := range adapted.Adapted() {
			if parts := strings.Split(architecture.Module(n), "."); len(parts) > 2 {
				names = append(names, strings.Join(parts[len(parts)-2:], "."))
			} else {
				names = append(names, architecture.Module(n))
			}
		}
		slices.Sort(names)
		if got := strings.Join(slices.Compact(names), " "); got != c.want {
			t.Errorf("%s %+v: %s, want %s", c.architecture, c.create, got, c.want)
		}
	}
}

// TestSavedBytes: the weights of all models and sessions have one bound, also those that were there before. One save
// too many is refused by name, and leaves the weights before and the model as they are.
func TestSavedBytes(t *testing.T) {
	out, dir := t.TempDir(), baseModel(t, false)
	save := func(c client, model, name string) any {
		_, answer := c.post("save_weights", object{"model_id": model, "path": name, "overwrite": true})
		_, answer = c.post("retrieve_future", object{"request_id": answer["request_id"]})
		return answer["code"]
	}
	c := serve(t, dir, out, 2)
	_, model := c.create(object{"rank": 2})
	if code := save(c, model, "one"); code != nil {
		t.Fatal(code)
	}
	e, err := Open(dir, Options{Out: out, Saved: 1})
	if err != nil {
		t.Fatal(err)
	}
	room, err := roomIn(e)
	if err != nil || room.left >= 0 {
		t.Fatalf("%+v, %v", room, err)
	}
	each := 1 - room.left // bytes of one save
	c = serveWith(t, dir, Options{Out: out, Threads: 2, Saved: 5 * each / 2})
	_, first := c.create(object{"rank": 2})
	_, second := c.create(object{"rank": 2})
	for _, step := range []struct {
		model, name string
		code        any
	}{{first, "one", nil}, {first, "two", "WEIGHTS_FULL"}, {second, "one", "WEIGHTS_FULL"}} {
		if code := save(c, step.model, step.name); code != step.code {
			t.Errorf("saving %s gives %v, want %v", step.name, code, step.code)
		}
	}
	if _, err := os.Stat(filepath.Join(out, first, "weights", "one", modelFile)); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(out, "*", "weights", ".*")); len(left) > 0 {
		t.Errorf("saves that were refused left %v", left)
	}
	if err := os.RemoveAll(filepath.Join(out, model)); err != nil {
		t.Fatal(err)
	}
	if code := save(c, second, "one"); code != nil {
		t.Errorf("with room again, saving gives %v", code)
	}
}

// TestSavedFolders: nothing of a save that was cut off is in the next one, and a model that has saved as often as it
// may can still overwrite.
func TestSavedFolders(t *testing.T) {
	out := t.TempDir()
	c := serve(t, baseModel(t, false), out, 2)
	_, model := c.create(object{"rank": 2})
	folder := filepath.Join(out, model, "weights")
	for i := range maxSaved - 1 {
		if err := os.MkdirAll(filepath.Join(folder, strconv.Itoa(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cut := filepath.Join(folder, ".one.part", optimizerDir)
	if err := os.MkdirAll(cut, 0o755); err != nil {
		t.Fatal(err)
	}
	save := func(name string) any {
		_, answer := c.post("save_weights", object{"model_id": model, "path": name, "overwrite": true})
		_, answer = c.post("retrieve_future", object{"request_id": answer["request_id"]})
		return answer["code"]
	}
	for _, step := range []struct {
		name string
		code any
	}{{"one", nil}, {"one", nil}, {"two", "WEIGHTS_FULL"}} {
		if code := save(step.name); code != step.code {
			t.Errorf("saving %s gives %v, want %v", step.name, code, step.code)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "one", optimizerDir)); !os.IsNotExist(err) {
		t.Errorf("the folder has a part of the save before: %v", err)
	}
	// a save that was cut off between its two renames has left the folder before under another name
	one, old := filepath.Join(folder, "one"), filepath.Join(folder, ".one.old")
	if err := os.Rename(one, old); err != nil {
		t.Fatal(err)
	}
	if err := replace(filepath.Join(folder, "nothing"), one); err == nil {
		t.Error("a folder that is missing is put in place")
	}
	if _, err := os.Stat(filepath.Join(old, modelFile)); err != nil {
		t.Errorf("the only copy is gone: %v", err)
	}
}

// TestSavedBy: weights that were saved with a token are there for it alone; those without one are there for all.
func TestSavedBy(t *testing.T) {
	e, err := Open(baseModel(t, false), Options{Out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Create("m", tinker.Create{Rank: 2, Attention: true}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{tinker.Training, tinker.Sampling} {
		for _, by := range []string{"a", ""} {
			p := tinker.Path{Model: "m", Kind: kind, Name: "w" + by, By: by}
			if err := e.Save("m", p, true); err != nil {
				t.Fatal(err)
			}
			for _, other := range []string{"a", "b", ""} {
				p.By = other
				_, saved := e.Saved(p)
				_, found := e.find(&p)
				load := e.Load("m", p, true)
				want := by == "a" && other == "b"
				if (saved != nil) != want || (found != nil) != want || (load != nil) != want {
					t.Errorf("%s of %q for %q: %v, %v, %v", kind, by, other, saved, found, load)
				}
			}
		}
	}
	p := tinker.Path{Model: "m", Kind: tinker.Sampling, Name: "kept", By: "a"}
	if err := e.Save("m", p, false); err != nil {
		t.Fatal(err)
	}
	_, mine := e.find(&p)
	p.By = "b"
	if _, others := e.find(&p); mine != nil || others == nil {
		t.Errorf("weights in memory: %v, of another %v", mine, others)
	}
}

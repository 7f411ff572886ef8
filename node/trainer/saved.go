package trainer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/compute/model/adapter"
	"github.com/starling-network/starling/compute/model/architecture"
	modelfolder "github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/prepare/hubfile"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker"
)

// Files of saved weights: a folder in Hugging Face form, in it an adapter as PEFT writes it, the moments of the
// optimizer, and a description.
const (
	modelFile     = "model.safetensors"
	adapterDir    = "adapter"
	optimizerDir  = "optimizer"
	describedFile = "trainer.json"
)

// copied are the files of the base model that belong to every model that begins from it.
var copied = []string{"config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
	"generation_config.json", "chat_template.jinja"}

// maxSaved bounds the lasting weights of one kind of a model.
const maxSaved = 256

// description is what a folder of saved weights says of them.
type description struct {
	Base      string `json:"base_model"`
	Token     string `json:"token,omitempty"` // digest of the one with which they were saved; "": all tokens see them
	Rank      int    `json:"lora_rank,omitempty"`
	Attention bool   `json:"train_attn,omitempty"`
	Feed      bool   `json:"train_mlp,omitempty"`
	Unembeds  bool   `json:"train_unembed,omitempty"`
	Steps     uint32 `json:"steps"`
}

// keptWeights are weights in memory.
type keptWeights struct {
	path tinker.Path
	weights
}

func (t *Trainer) folder(p tinker.Path) string { return filepath.Join(t.out, p.Model, p.Kind, p.Name) }

func missing(p tinker.Path) error {
	return failure.New(http.StatusNotFound, "WEIGHTS_UNKNOWN", "there are no weights at "+p.String(),
		"save them again; without a name, only the latest ones are kept")
}

// keep keeps weights in memory, in place of those that were used least lately.
func (t *Trainer) keep(p tinker.Path, w weights) {
	t.kept = slices.DeleteFunc(t.kept, func(k keptWeights) bool { return k.path == p })
	if t.kept = append(t.kept, keptWeights{p, w}); len(t.kept) > t.most {
		t.kept = t.kept[1:]
	}
}

// find returns the weights under a path, or those of the base model.
func (t *Trainer) find(p *tinker.Path) (weights, error) {
	if p == nil {
		return weights{config: t.config, params: t.tensors}, nil
	}
	if i := slices.IndexFunc(t.kept, func(k keptWeights) bool { return k.path == *p }); i >= 0 {
		found := t.kept[i].weights
		t.keep(*p, found)
		return found, nil
	}
	w, _, err := t.read(*p)
	if err != nil {
		return w, err
	}
	t.keep(*p, w)
	return w, nil
}

// Save implements tinker.Engine.
func (t *Trainer) Save(name string, p tinker.Path, lasting bool) error {
	m, err := t.model(name)
	if err != nil {
		return err
	}
	w := m.weights
	w.params = cloned(m.params)
	if lasting {
		if err := t.write(m, p); err != nil {
			return err
		}
	}
	if p.Kind == tinker.Sampling {
		t.keep(p, w)
	} else {
		t.kept = slices.DeleteFunc(t.kept, func(k keptWeights) bool { return k.path == p })
	}
	return nil
}

// write writes the folder of weights: under another name until it is whole.
func (t *Trainer) write(m *model, p tinker.Path) error {
	dir := t.folder(p)
	part := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".part")
	if err := os.RemoveAll(part); err != nil { // of a save that was cut off
		return err
	}
	_, absent := os.Stat(dir)
	if entries, err := os.ReadDir(filepath.Dir(dir)); err == nil && absent != nil && len(entries) >= maxSaved {
		return failure.New(http.StatusConflict, "WEIGHTS_FULL", fmt.Sprintf("%d weights of the model are saved",
			len(entries)), "remove some in "+filepath.Dir(dir))
	}
	files, err := t.files(m, p.Kind == tinker.Training)
	if err != nil {
		return err
	}
	room, err := roomIn(t)
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	for _, f := range files {
		path := filepath.Join(part, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := folder.WriteFileBy(path, room.writes(f)); err != nil {
			return err
		}
	}
	c := m.create
	d := description{Base: t.base.Name, Token: p.By, Rank: c.Rank, Attention: c.Attention, Feed: c.Feed,
		Unembeds: c.Unembeds,
		Steps:    m.steps}
	if err := folder.WriteJSON(filepath.Join(part, describedFile), d); err != nil {
		return err
	}
	return replace(part, dir)
}

// replace gives a folder the name dir. The folder with this name is kept as .NAME.old until then, also through a crash.
func replace(part, dir string) error {
	old := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".old")
	if _, err := os.Stat(dir); err == nil {
		if err := errors.Join(os.RemoveAll(old), os.Rename(dir, old)); err != nil {
			return err
		}
	}
	if err := os.Rename(part, dir); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// files are those of the model, with the state of its optimizer if it is to be trained on.
func (t *Trainer) files(m *model, training bool) (files []hubfile.File, err error) {
	for _, name := range copied {
		text, err := os.ReadFile(filepath.Join(t.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, hubfile.Text(name, text))
	}
	if m.create.Rank == 0 {
		files = append(files, hubfile.Weights(modelFile, t.config.Tensors(),
			func(name string) (*tensor.Tensor, error) { return m.params[name], nil }))
	} else {
		text, err := hubfile.AdapterJSON(m.config.AdapterJSON, t.base.Tokenizer)
		if err != nil {
			return nil, err
		}
		files = append(files, hubfile.Text(filepath.Join(adapterDir, "adapter_config.json"), text),
			hubfile.Weights(modelFile, t.config.Tensors(), func(name string) (*tensor.Tensor, error) {
				return adapter.Merge(m.config, name, t.tensors[name], m.params)
			}), hubfile.Weights(filepath.Join(adapterDir, "adapter_model.safetensors"), m.config.Adapters(),
				func(name string) (*tensor.Tensor, error) { return m.params[name], nil }))
	}
	if training && m.first != nil {
		moments := prefixed(optimizer.First, m.first)
		for name, x := range prefixed(optimizer.Second, m.second) {
			moments[name] = x
		}
		files = append(files, hubfile.Weights(filepath.Join(optimizerDir, modelFile), m.moments(),
			func(name string) (*tensor.Tensor, error) { return moments[name], nil }))
	}
	return files, nil
}

// moments lists the tensors of the state of the optimizer.
func (w weights) moments() (list []architecture.Named) {
	for _, prefix := range []string{optimizer.First, optimizer.Second} {
		for _, n := range tokenloss.Trained(w.config) {
			n.Name = prefix + n.Name
			list = append(list, n)
		}
	}
	return list
}

// described reads the description of saved weights.
func (t *Trainer) described(p tinker.Path) (d description, c tinker.Create, err error) {
	err = folder.ReadJSON(filepath.Join(t.folder(p), describedFile), &d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, c, missing(p)
	case err != nil:
		return d, c, err
	case d.Token != "" && p.By != "" && d.Token != p.By:
		return d, c, missing(p)
	case d.Base != t.base.Name:
		return d, c, failure.New(http.StatusConflict, "WEIGHTS_OTHER", "the weights are of the base model "+d.Base,
			"load them at a server of that model")
	}
	return d, tinker.Create{Rank: d.Rank, Attention: d.Attention, Feed: d.Feed, Unembeds: d.Unembeds}, nil
}

// Saved implements tinker.Engine.
func (t *Trainer) Saved(p tinker.Path) (tinker.Create, error) {
	_, c, err := t.described(p)
	return c, err
}

// read reads saved weights.
func (t *Trainer) read(p tinker.Path) (w weights, steps uint32, err error) {
	d, c, err := t.described(p)
	if err != nil {
		return w, 0, err
	}
	w.create = c
	if w.config, err = t.adapted(c); err != nil {
		return w, 0, err
	}
	if c.Rank == 0 {
		m, err := modelfolder.Read(os.DirFS(t.folder(p)))
		if err != nil {
			return w, 0, err
		}
		if !bytes.Equal(m.Config.JSON(), t.config.JSON()) {
			return w, 0, fmt.Errorf("the weights at %s are of another model", p)
		}
		w.params = m.Tensors
		return w, d.Steps, nil
	}
	a, err := modelfolder.ReadAdapter(os.DirFS(filepath.Join(t.folder(p), adapterDir)), t.config)
	if err != nil {
		return w, 0, err
	}
	for _, n := range w.config.Adapters() {
		if x := a.Tensors[n.Name]; x == nil || !x.Shape.Equal(n.Shape) {
			return w, 0, fmt.Errorf("the adapter at %s has no %s of shape %v", p, n.Name, n.Shape)
		}
	}
	w.params = a.Tensors
	return w, d.Steps, nil
}

// Load implements tinker.Engine. Without the state of the optimizer, the model counts its steps from the first again.
func (t *Trainer) Load(name string, p tinker.Path, state bool) error {
	m, err := t.model(name)
	if err != nil {
		return err
	}
	w, steps, err := t.read(p)
	if err != nil {
		return err
	}
	if w.create != m.create {
		return failure.New(http.StatusConflict, "WEIGHTS_OTHER", "the weights train other layers, or are of another rank",
			"create a model as weights_info describes them")
	}
	w.params = cloned(w.params)
	loaded := &model{weights: w}
	if state && steps > 0 {
		moments, err := modelfolder.ReadExact(os.DirFS(filepath.Join(t.folder(p), optimizerDir)), w.moments(), "")
		if err != nil {
			return err
		}
		loaded.first, loaded.second, loaded.steps = map[string]*tensor.Tensor{}, map[string]*tensor.Tensor{}, steps
		for _, n := range tokenloss.Trained(w.config) {
			loaded.first[n.Name] = moments[optimizer.First+n.Name].Clone()
			loaded.second[n.Name] = moments[optimizer.Second+n.Name].Clone()
		}
	}
	t.models[name] = loaded
	return nil
}

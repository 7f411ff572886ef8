// Package trainer trains models by the steps of clients: it is the tinker.Engine that computes on this machine, with
// the programs and kernels of the work units of networks. The same requests give the same bits on every machine. No
// network verifies them, and nothing is paid for them.
package trainer

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker"
)

// ErrFolder wraps every reason why a folder is not a model from which others can begin.
var ErrFolder = errors.New("not a model that can be trained")

// Options say what a trainer does at once. Zero values are defaults.
type Options struct {
	Name    string // of the base model; "": the name of its folder
	Out     string // folder of saved weights
	Threads int    // 1
	Context int    // tokens of a sequence, at most; 0: as many as the model reads
	Kept    int    // weights in memory that prompts are continued with: 4
	Memory  int64  // bytes of keys and values of continuations: 1 GiB
	Saved   int64  // bytes of saved weights in Out, at most: DefaultSaved
}

// Trainer is a tinker.Engine.
type Trainer struct {
	dir      string // of the base model
	out      string
	base     tinker.Base
	config   architecture.Config
	tensors  map[string]*tensor.Tensor
	tok      *tokenizer.Tokenizer
	ends     []int32
	threads  int
	memory   int64
	saved    int64 // bytes in out, at most
	models   map[string]*model
	programs programs
	kept     []keptWeights // the latest last
	most     int           // of kept
	writers  map[tinker.Create]*writer
	ignored  []string
}

// A model is trained: its weights, the sums of gradients, and the moments of AdamW.
type model struct {
	weights
	grads, first, second map[string]*tensor.Tensor // by the names of trained tensors; nil: zeros
	lost                 bool                      // a pass failed, and gradients since the last step are missing
	steps                uint32
}

// weights are those that a model trains, by their names, over those of the base model.
type weights struct {
	create   tinker.Create // without its seed
	config   architecture.Config
	params   map[string]*tensor.Tensor
	numerics uint32 // version of the run that trains them; 0: that of the trainer
}

// Open loads the model in a folder in Hugging Face form. The error wraps ErrFolder.
func Open(dir string, o Options) (*Trainer, error) {
	m, err := pretrained.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFolder, dir, err)
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if o.Name == "" {
		o.Name = filepath.Base(absolute)
	}
	or := func(n, fallback int64) int64 {
		if n < 1 {
			return fallback
		}
		return n
	}
	threads := int(or(int64(o.Threads), 1))
	return &Trainer{dir: dir, out: o.Out, config: m.Config, tensors: m.Tensors, tok: m.Tokenizer, ends: m.Ends,
		threads: threads, memory: or(o.Memory, 1<<30), saved: or(o.Saved, DefaultSaved), most: int(or(int64(o.Kept), 4)),
		models:   map[string]*model{},
		programs: programs{threads: threads}, writers: map[tinker.Create]*writer{}, ignored: m.Ignored,
		base: tinker.Base{Name: o.Name, Architecture: m.Config.Architecture(), Tokenizer: absolute,
			Context: int(min(or(int64(o.Context), math.MaxInt), int64(m.Config.Context()))), Vocab: m.Config.VocabSize()}}, nil
}

// Ignored lists the keys of config.json that mean nothing to the base model.
func (t *Trainer) Ignored() []string { return t.ignored }

// Notice is for the clients of a server that trains here.
const Notice = "training runs on the machine of this server; no network verifies it"

// Base implements tinker.Engine.
func (t *Trainer) Base() tinker.Base { return t.base }

// alpha of adapters, which is 32 for every rank, as other servers of the interface have it.
const alpha = 32

// adapted is the base model with the adapters that are asked for.
func (t *Trainer) adapted(c tinker.Create) (architecture.Config, error) {
	if c.Rank == 0 {
		return t.config, nil
	}
	n := architecture.NamesOf(t.config.Architecture())
	attention, feed := []string{n.Q, n.K, n.V, n.QKV, n.O}, []string{n.Gate, n.Up, n.GateUp, n.Down}
	if t.config.Architecture() == architecture.GPT2 {
		attention, feed = []string{"attn.c_attn", "attn.c_proj"}, []string{"mlp.c_fc", "mlp.c_proj"}
	}
	l := architecture.LoRA{Rank: c.Rank, Alpha: alpha}
	output := []string{strings.TrimSuffix(t.config.OutputName(), ".weight")}
	for _, part := range []struct {
		wanted bool
		names  []string
	}{{c.Attention, attention}, {c.Feed, feed}, {c.Unembeds, output}} {
		for _, name := range part.names {
			one := architecture.LoRA{Rank: c.Rank, Alpha: alpha, Targets: []string{name}}
			if _, err := t.config.Adapt(one); part.wanted && name != "" && err == nil {
				l.Targets = append(l.Targets, name)
			}
		}
	}
	adapted, err := t.config.Adapt(l)
	if err != nil {
		return adapted, failure.New(http.StatusBadRequest, "INVALID_VALUE", "the model has no layer that is to be trained: "+
			err.Error(), "train other layers, or all weights")
	}
	return adapted, nil
}

// Create implements tinker.Engine.
func (t *Trainer) Create(name string, c tinker.Create) error {
	adapted, err := t.adapted(c)
	if err != nil {
		return err
	}
	w := weights{create: c, config: adapted, params: map[string]*tensor.Tensor{}}
	if c.Rank > 0 {
		w.params = adapted.InitAdapters(c.Seed)
	} else {
		w.params = cloned(t.tensors)
	}
	w.create.Seed = 0
	t.models[name] = &model{weights: w}
	return nil
}

func cloned(all map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	out := make(map[string]*tensor.Tensor, len(all))
	for name, x := range all {
		out[name] = x.Clone()
	}
	return out
}

// zeros are tensors of the shapes of the trained ones.
func (w weights) zeros() map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for _, n := range tokenloss.Trained(w.config) {
		out[n.Name] = tensor.New(n.Shape)
	}
	return out
}

// Unload implements tinker.Engine.
func (t *Trainer) Unload(name string) { delete(t.models, name) }

func (t *Trainer) model(name string) (*model, error) {
	if m, ok := t.models[name]; ok {
		return m, nil
	}
	return nil, failure.New(http.StatusNotFound, "MODEL_UNKNOWN", "the server has no such model", "create it again")
}

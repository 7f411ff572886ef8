package folder

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
)

// The names of the files of an adapter.
const (
	adapterConfigFile = "adapter_config.json"
	adapterFile       = "adapter_model.safetensors"
)

// Adapter is what a folder of PEFT holds: a low-rank adapter of a model.
type Adapter struct {
	Config  architecture.Config       // the model, adapted
	Tensors map[string]*tensor.Tensor // float32, by the names of Config.Adapters
}

// ReadAdapter reads a folder as PEFT writes it, adapter_config.json and adapter_model.safetensors, for the model c.
// Only plain LoRA is known: what adds more, or scales otherwise, is refused. Every tensor must be there, of the shape
// that the model and the rank give it, and be finite. Errors are of type *Error.
func ReadAdapter(fsys fs.FS, c architecture.Config) (*Adapter, error) {
	raw, err := readLimited(fsys, adapterConfigFile, maxConfig)
	if err != nil {
		return nil, &Error{File: adapterConfigFile, Err: err}
	}
	lora, err := parseAdapter(raw)
	if err != nil {
		return nil, &Error{File: adapterConfigFile, Err: err}
	}
	a := &Adapter{Tensors: map[string]*tensor.Tensor{}}
	if a.Config, err = c.Adapt(lora); err != nil {
		return nil, &Error{File: adapterConfigFile, Err: err}
	}
	if raw, err = fs.ReadFile(fsys, adapterFile); err != nil {
		return nil, &Error{File: adapterFile, Err: err}
	}
	f, err := safetensors.Open(raw)
	if err != nil {
		return nil, &Error{File: adapterFile, Err: err}
	}
	list := a.Config.Adapters()
	for _, n := range list {
		t, err := finiteTensor(f, n.Name, n.Shape)
		if err != nil {
			return nil, &Error{File: adapterFile, Tensor: n.Name, Err: err}
		}
		a.Tensors[n.Name] = t
	}
	for _, name := range f.Names() {
		if a.Tensors[name] == nil {
			return nil, &Error{File: adapterFile, Tensor: name, Err: ErrUnknown}
		}
	}
	return a, nil
}

// parseAdapter reads what adapter_config.json says about plain LoRA.
func parseAdapter(raw []byte) (architecture.LoRA, error) {
	var keys struct {
		Type       string          `json:"peft_type"`
		Rank       int             `json:"r"`
		Alpha      float64         `json:"lora_alpha"`
		Targets    json.RawMessage `json:"target_modules"`
		Bias       string          `json:"bias"`
		RSLoRA     bool            `json:"use_rslora"`
		DoRA       bool            `json:"use_dora"`
		LoRABias   bool            `json:"lora_bias"`
		Ranks      map[string]any  `json:"rank_pattern"`
		Alphas     map[string]any  `json:"alpha_pattern"`
		Saved      []string        `json:"modules_to_save"`
		Transforms any             `json:"layers_to_transform"`
	}
	if err := json.Unmarshal(raw, &keys); err != nil {
		return architecture.LoRA{}, fmt.Errorf("%w (%w)", ErrJSON, err)
	}
	l := architecture.LoRA{Rank: keys.Rank, Alpha: keys.Alpha}
	if err := json.Unmarshal(keys.Targets, &l.Targets); err != nil {
		var all string
		if json.Unmarshal(keys.Targets, &all) != nil || all != architecture.AllLinear {
			return l, fmt.Errorf("%w: target_modules is neither a list of names nor %q", ErrJSON, architecture.AllLinear)
		}
		l.Targets = []string{all}
	}
	plain := map[string]bool{
		"peft_type":    keys.Type == "LORA",
		"bias":         keys.Bias == "" || keys.Bias == "none",
		"use_rslora":   !keys.RSLoRA,
		"use_dora":     !keys.DoRA,
		"lora_bias":    !keys.LoRABias,
		"rank_pattern": len(keys.Ranks) == 0, "alpha_pattern": len(keys.Alphas) == 0,
		"modules_to_save": len(keys.Saved) == 0, "layers_to_transform": keys.Transforms == nil,
	}
	for _, key := range []string{"peft_type", "bias", "use_rslora", "use_dora", "lora_bias", "rank_pattern",
		"alpha_pattern", "modules_to_save", "layers_to_transform"} {
		if !plain[key] {
			return l, fmt.Errorf("%w: %s has a value that plain LoRA does not have", ErrAdapterKind, key)
		}
	}
	return l, nil
}

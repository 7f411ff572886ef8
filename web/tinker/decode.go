package tinker

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/starling-network/starling/web/failure"
)

// Limits of a request.
const (
	maxBody      = 16 << 20 // bytes
	maxData      = 1024     // sequences of a pass
	maxTokens    = 1 << 18  // tokens of a pass, or of all continuations of a prompt
	maxNumber    = 128      // continuations of a prompt
	maxStops     = 16
	maxStopBytes = 256
	maxRank      = 512
)

// anything is a key that says nothing to the server.
type anything = json.RawMessage

// invalid refuses a value of a request.
func invalid(param, format string, args ...any) error {
	detail := param + ": " + fmt.Sprintf(format, args...)
	return failure.InvalidValue(param, detail, "change "+param)
}

type sessionRequest struct {
	Session  string   `json:"session_id"`
	Tags     anything `json:"tags"`
	Metadata anything `json:"user_metadata"`
	Version  anything `json:"sdk_version"`
	Project  anything `json:"project_id"`
	Type     anything `json:"type"`
}

type createRequest struct {
	Session   string   `json:"session_id"`
	Sequence  anything `json:"model_seq_id"`
	Base      string   `json:"base_model"`
	Metadata  anything `json:"user_metadata"`
	LoRA      *lora    `json:"lora_config"`
	Optimizer *struct {
		Type string `json:"type"`
	} `json:"optimizer_config"`
	Type anything `json:"type"`
}

type lora struct {
	Rank      int    `json:"rank"`
	Seed      *int64 `json:"seed"`
	Unembed   *bool  `json:"train_unembed"`
	Feed      *bool  `json:"train_mlp"`
	Attention *bool  `json:"train_attn"`
}

// create is the model that is asked for.
func (r createRequest) create() (Create, error) {
	if r.Optimizer != nil && r.Optimizer.Type != "adam" {
		return Create{}, invalid("optimizer_config", "the optimizer %q is not supported, only adam is", r.Optimizer.Type)
	}
	if r.LoRA == nil {
		return Create{}, nil
	}
	if r.LoRA.Rank < 1 || r.LoRA.Rank > maxRank {
		return Create{}, invalid("lora_config.rank", "%d is not from 1 to %d; without lora_config all weights are trained",
			r.LoRA.Rank, maxRank)
	}
	or := func(b *bool) bool { return b == nil || *b }
	c := Create{Rank: r.LoRA.Rank, Attention: or(r.LoRA.Attention), Feed: or(r.LoRA.Feed), Unembeds: or(r.LoRA.Unembed)}
	if r.LoRA.Seed != nil {
		c.Seed = uint64(*r.LoRA.Seed)
	}
	if !c.Attention && !c.Feed && !c.Unembeds {
		return Create{}, invalid("lora_config", "no layer is to be trained")
	}
	return c, nil
}

type modelRequest struct {
	Model string   `json:"model_id"`
	Type  anything `json:"type"`
}

type passRequest struct {
	Model    string   `json:"model_id"`
	Sequence *int64   `json:"seq_id"`
	Backward *input   `json:"forward_backward_input"`
	Forward  *input   `json:"forward_input"`
	Type     anything `json:"type"`
}

type input struct {
	Data   []datum            `json:"data"`
	Loss   string             `json:"loss_fn"`
	Config map[string]float64 `json:"loss_fn_config"`
}

type datum struct {
	Input  modelInput        `json:"model_input"`
	Inputs map[string]values `json:"loss_fn_inputs"`
}

type modelInput struct {
	Chunks []struct {
		Type     string   `json:"type"`
		Tokens   []int32  `json:"tokens"`
		Data     anything `json:"data"`
		Location anything `json:"location"`
		Format   anything `json:"format"`
		Expected anything `json:"expected_tokens"`
	} `json:"chunks"`
}

type values struct {
	Data    []float64 `json:"data"`
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Crows   anything  `json:"sparse_crow_indices"`
	Columns anything  `json:"sparse_col_indices"`
}

// tokens are those of all chunks.
func (m modelInput) tokens(param string, b Base) (all []int32, err error) {
	for i, c := range m.Chunks {
		if c.Type != "encoded_text" && c.Type != "" || c.Data != nil || c.Location != nil {
			return nil, invalid(param, "chunk %d is of type %q; the models here read tokens only", i, c.Type)
		}
		all = append(all, c.Tokens...)
	}
	if len(all) == 0 || len(all) > b.Context {
		return nil, invalid(param, "%d tokens; the model reads 1 to %d", len(all), b.Context)
	}
	return all, inVocabulary(param, all, b)
}

func inVocabulary(param string, tokens []int32, b Base) error {
	for i, id := range tokens {
		if id < 0 || int(id) >= b.Vocab {
			return invalid(param, "token %d is %d, the model has %d", i, id, b.Vocab)
		}
	}
	return nil
}

// losses lists the losses that the server has, for refusals.
const losses = CrossEntropy + ", " + ImportanceSampling + " and " + PPO

// refusedLosses are losses of other servers, with the reason why this one has not got them.
var refusedLosses = map[string]string{
	"cispo": "it clips the ratio but keeps its gradient", "gspo": "its ratio is of a whole sequence",
	"dro": "it penalises the square of the ratio", "dppo": "its bounds are of the divergence",
	"ppo_critic": "the models here have no value head",
}

// loss is the loss of an input.
func (in *input) loss() (Loss, error) {
	l := Loss{Name: in.Loss}
	if l.Name == PPO {
		l.Low, l.High = 0.8, 1.2
	}
	if why, known := refusedLosses[l.Name]; known {
		return l, invalid("loss_fn", "%s is not supported, because %s; there are %s", l.Name, why, losses)
	}
	if l.Name != CrossEntropy && l.Name != ImportanceSampling && l.Name != PPO {
		return l, invalid("loss_fn", "%.80q is no loss here; there are %s", l.Name, losses)
	}
	for key, x := range in.Config {
		switch {
		case l.Name == PPO && key == "clip_low_threshold":
			l.Low = x
		case l.Name == PPO && key == "clip_high_threshold":
			l.High = x
		default:
			return l, invalid("loss_fn_config", "%s has no key %.80q", l.Name, key)
		}
	}
	if l.Name == PPO && !(l.Low >= 0 && l.Low <= 1 && l.High >= 1 && l.High <= 1000) {
		return l, invalid("loss_fn_config", "a ratio from %g to %g; give at least 0 and at most 1, then at least 1", l.Low,
			l.High)
	}
	return l, nil
}

// data are the sequences of an input for a loss.
func (in *input) data(l Loss, b Base) ([]Datum, error) {
	if len(in.Data) == 0 || len(in.Data) > maxData {
		return nil, invalid("data", "%d sequences; a request has 1 to %d", len(in.Data), maxData)
	}
	out, total := make([]Datum, len(in.Data)), 0
	for i, d := range in.Data {
		param := fmt.Sprintf("data[%d]", i)
		var err error
		if out[i], err = d.datum(param, l, b); err != nil {
			return nil, err
		}
		if total += len(out[i].Tokens); total > maxTokens {
			return nil, invalid("data", "more than %d tokens", maxTokens)
		}
	}
	return out, nil
}

func (d datum) datum(param string, l Loss, b Base) (out Datum, err error) {
	if out.Tokens, err = d.Input.tokens(param+".model_input", b); err != nil {
		return out, err
	}
	n := len(out.Tokens)
	sampled := l.Name != CrossEntropy
	for name := range d.Inputs {
		if name != "target_tokens" && name != "weights" && !(sampled && (name == "logprobs" || name == "advantages")) {
			return out, invalid(param+".loss_fn_inputs", "%s does not read %.80q", l.Name, name)
		}
	}
	read := func(name string) (list []float64, err error) {
		v, ok := d.Inputs[name]
		if !ok {
			return nil, invalid(param+".loss_fn_inputs."+name, "%s needs it", l.Name)
		}
		return v.list(param+".loss_fn_inputs."+name, n)
	}
	targets, err := read("target_tokens")
	if err != nil {
		return out, err
	}
	for i, x := range targets {
		if x != math.Trunc(x) || !(math.Abs(x) < 1<<31) {
			return out, invalid(param+".loss_fn_inputs.target_tokens", "element %d is no token", i)
		}
		out.Targets = append(out.Targets, int32(x))
	}
	if err := inVocabulary(param+".loss_fn_inputs.target_tokens", out.Targets, b); err != nil {
		return out, err
	}
	for _, f := range []struct {
		name   string
		to     *[]float32
		wanted bool
	}{{"weights", &out.Weights, false}, {"logprobs", &out.Sampled, sampled}, {"advantages", &out.Advantages, sampled}} {
		if _, given := d.Inputs[f.name]; !given && !f.wanted {
			continue
		}
		list, err := read(f.name)
		if err != nil {
			return out, err
		}
		for _, x := range list {
			*f.to = append(*f.to, float32(x))
		}
	}
	if out.Weights == nil {
		out.Weights = make([]float32, n)
		for i := range out.Weights {
			out.Weights[i] = 1
		}
	}
	return out, nil
}

// list are n finite numbers.
func (v values) list(param string, n int) ([]float64, error) {
	if v.Crows != nil || v.Columns != nil {
		return nil, invalid(param, "sparse tensors are not supported")
	}
	if v.DType != "" && v.DType != "float32" && v.DType != "int64" {
		return nil, invalid(param, "the type %.80q is neither float32 nor int64", v.DType)
	}
	if len(v.Shape) > 1 || len(v.Shape) == 1 && v.Shape[0] != len(v.Data) || len(v.Data) != n {
		return nil, invalid(param, "%d elements of shape %v; the sequence has %d tokens, and each has one target",
			len(v.Data), v.Shape, n)
	}
	for i, x := range v.Data {
		if !(math.Abs(x) <= math.MaxFloat32) {
			return nil, invalid(param, "element %d is too large", i)
		}
	}
	return v.Data, nil
}

type stepRequest struct {
	Model    string   `json:"model_id"`
	Sequence *int64   `json:"seq_id"`
	Type     anything `json:"type"`
	Adam     *struct {
		Rate  *float64 `json:"learning_rate"`
		Beta1 *float64 `json:"beta1"`
		Beta2 *float64 `json:"beta2"`
		Eps   *float64 `json:"eps"`
		Decay *float64 `json:"weight_decay"`
		Clip  *float64 `json:"grad_clip_norm"`
	} `json:"adam_params"`
}

// adam are the parameters of a step; those that are not given are the published defaults.
func (r stepRequest) adam() (Adam, error) {
	a := Adam{Rate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-12}
	if r.Adam == nil {
		return a, invalid("adam_params", "they are missing")
	}
	for _, f := range []struct {
		name     string
		from     *float64
		to       *float64
		low, top float64
		open     bool // top itself is not allowed
	}{
		{"learning_rate", r.Adam.Rate, &a.Rate, 0, 1e3, false}, {"beta1", r.Adam.Beta1, &a.Beta1, 0, 1, true},
		{"beta2", r.Adam.Beta2, &a.Beta2, 0, 1, true}, {"eps", r.Adam.Eps, &a.Eps, math.SmallestNonzeroFloat32, 1, true},
		{"weight_decay", r.Adam.Decay, &a.Decay, 0, 1, false}, {"grad_clip_norm", r.Adam.Clip, &a.Clip, 0, 1e9, false},
	} {
		if f.from == nil {
			continue
		}
		if x := *f.from; !(x >= f.low && x <= f.top) || f.open && x == f.top {
			return a, invalid("adam_params."+f.name, "%g is not from %g to %g", x, f.low, f.top)
		}
		*f.to = *f.from
	}
	return a, nil
}

type weightsRequest struct {
	Model     string   `json:"model_id"`
	Path      string   `json:"path"`
	Sequence  *int64   `json:"seq_id"`
	Sampler   *int64   `json:"sampling_session_seq_id"`
	Optimizer bool     `json:"optimizer"`
	Overwrite bool     `json:"overwrite"`
	Metadata  anything `json:"user_metadata"`
	Type      anything `json:"type"`
}

type pathRequest struct {
	Path string `json:"tinker_path"`
}

type futureRequest struct {
	ID       string   `json:"request_id"`
	Metadata anything `json:"allow_metadata_only"`
}

// Package tinker answers clients of the Tinker API: training loops that a program leads by forward, forward_backward,
// optim_step, sample and save_weights. It has the routes, their JSON, the sessions, and a queue of work whose results
// are futures, with a line for each model; an Engine computes.
package tinker

import (
	"strings"

	"github.com/starling-network/starling/web/access"
)

// Engine computes the work of a server. It is called by one goroutine at a time. Its errors are of type *failure.Error
// where the client is to blame.
type Engine interface {
	Base() Base
	Create(model string, c Create) error
	// Forward returns the log-probabilities of the targets of each datum.
	Forward(model string, data []Datum) (*Pass, error)
	// Backward adds the gradients of the sum of the losses to those that the model has.
	Backward(model string, data []Datum, l Loss) (*Pass, error)
	// Step moves the weights by the gradients, which it clears, and returns metrics.
	Step(model string, s Step) (map[string]float64, error)
	// Save keeps the weights of a model under a path. Those that are not to last are kept in memory, the latest ones.
	Save(model string, p Path, lasting bool) error
	// Load gives a model the weights under a path, and with optimizer also the state of its optimizer.
	Load(model string, p Path, optimizer bool) error
	// Saved describes the lasting weights under a path. It is called by any goroutine, as Base is.
	Saved(p Path) (Create, error)
	// Sample continues a prompt by the weights under a path, or by those of the base model.
	Sample(from *Path, s Sample) (*Sampled, error)
	Unload(model string)
}

// Lasting is an Engine whose models outlast the server. Its methods Step and Resume wait for others: each is called by
// a goroutine of its own, while the other methods are called for other models.
type Lasting interface {
	Engine
	// Resume gives back a model that was created at a server before this one, as its last step left it. A step that is
	// asked for again under the identifier of that request is not taken twice.
	Resume(model string, c Create) error
}

// Base is the model from which all models of a server begin.
type Base struct {
	Name         string
	Architecture string
	Tokenizer    string // folder
	Context      int    // tokens of a sequence
	Vocab        int
}

// Create says which weights of a model are trained: adapters of a rank, or all weights for rank 0.
type Create struct {
	Rank                      int
	Seed                      uint64
	Attention, Feed, Unembeds bool // layers that have adapters
}

// Datum is a sequence of tokens with the targets that follow each of them.
type Datum struct {
	Tokens, Targets []int32
	Weights         []float32 // of the loss of each target
	Sampled         []float32 // log-probabilities of the targets when they were drawn; nil for cross_entropy
	Advantages      []float32 // nil for cross_entropy
}

// Names of losses.
const (
	CrossEntropy       = "cross_entropy"
	ImportanceSampling = "importance_sampling"
	PPO                = "ppo"
)

// Loss is a loss by its name, with the range of the ratio of probabilities of PPO.
type Loss struct {
	Name      string
	Low, High float64
}

// Pass is the result of a pass over data.
type Pass struct {
	LogProbs [][]float32 // of each datum
	Loss     float64     // the sum over all targets, if Backward
	Backward bool        // with gradients
	// Later waits for the pass, which is computed with a later step, and returns it; nil: it is here.
	Later func() (*Pass, error)
}

// Step asks for a step.
type Step struct {
	Adam
	ID string        // of the request
	By access.Caller // who asks, and pays if the engine has a network take the step
}

// Adam are the parameters of a step. Clip bounds the norm of all gradients; 0 is no bound.
type Adam struct{ Rate, Beta1, Beta2, Eps, Decay, Clip float64 }

// Sample asks for continuations of a prompt.
type Sample struct {
	Prompt      []int32
	Number      int
	Tokens      int // of each, at most
	Temperature float64
	TopP        float64
	TopK        int // 0: all
	Seed        uint64
	StopTokens  []int32
	StopTexts   []string
	PromptLogs  bool
}

// Sampled are continuations. PromptLogs are of the tokens of the prompt but the first.
type Sampled struct {
	Sequences  []Sequence
	PromptLogs []float32
}

// Sequence is a continuation: its tokens with their log-probabilities, before temperature and cuts. A token that ends
// it is its last one.
type Sequence struct {
	Tokens   []int32
	LogProbs []float32
	Stopped  bool // by the end of the text or a stop sequence, not by the number of tokens
}

// Path is an address of weights, tinker://MODEL/KIND/NAME, as a client gives it. Weights that were saved with a token
// are there for that token alone, and at a server without tokens for everybody.
type Path struct {
	Model, Kind, Name string
	By                string `json:",omitempty"` // token of the client
}

// Kinds of weights.
const (
	Training = "weights"         // with the state of the optimizer
	Sampling = "sampler_weights" // without
)

const scheme = "tinker://"

func (p Path) String() string { return scheme + p.Model + "/" + p.Kind + "/" + p.Name }

// ParsePath reads a path. Its parts are safe as names of folders.
func ParsePath(text string) (Path, bool) {
	rest, ok := strings.CutPrefix(text, scheme)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return Path{}, false
	}
	p := Path{Model: parts[0], Kind: parts[1], Name: parts[2]}
	return p, validName(p.Model) && validName(p.Name) && (p.Kind == Training || p.Kind == Sampling)
}

// validName reports whether a name consists of up to 128 letters, digits, dashes, underscores and, after the first
// character, dots.
func validName(name string) bool {
	if name == "" || len(name) > 128 || name[0] == '.' {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
	}) < 0
}

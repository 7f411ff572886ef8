// Package examples has the data and the networks of jobs whose examples are no text to continue: images, texts or the
// nodes of a graph with their classes, pairs of texts or of answers, and images alone. It trains nothing.
package examples

import (
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/diffusion"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/gnn"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/dataset"
)

// Network is a network that learns from examples.
type Network interface {
	Architecture() string
	Parameters() int // the number of weights
	Tensors() []architecture.Named
	JSON() []byte // its config.json
}

// Job is a network with its data.
type Job struct {
	Network Network
	Corpus  *data.Corpus
	Example int // tokens of a row of the corpus
	// Read are the tensors that the network reads besides examples, by their names; nil: there are none.
	Read map[string]*tensor.Tensor
	// Tokenizer is that of a network for texts; nil: it is another
	Tokenizer *tokenizer.Tokenizer
}

// Examples that are evaluated at a time: images; texts; pairs of texts, at most, which are compared with each other;
// and nodes, at most, as the scores of all nodes are computed for any of them.
const (
	evalImages = 32
	evalTexts  = 8
	evalPairs  = 256
	evalNodes  = 1024
)

// evalTokens limits the tokens of the pairs that are evaluated at a time.
const evalTokens = 1 << 15

// EvalBatch is how many examples are evaluated at a time.
func (c *Job) EvalBatch() int {
	held := (c.Corpus.Val.Len() - 1) / c.Example
	switch n := c.Network.(type) {
	case embed.Network:
		return max(2, min(evalPairs, evalTokens/(2*n.Length()), held))
	case textclass.Network:
		return evalTexts
	case gnn.Network:
		return max(1, min(evalNodes, held))
	}
	return evalImages
}

// Of reads the data of a job, which starts from a language model if base is not nil. The error is a *problem.ErrorList.
func Of(j *job.Job, base *folder.Model) (*Job, error) {
	switch {
	case j.Task == spec.TaskEmbed:
		return pairsOf(j, base)
	case j.Task == spec.TaskReward || j.ClassifiesText():
		read := dataset.TextsOf
		if j.Task == spec.TaskReward {
			read = dataset.PreferencesOf
		}
		t, err := read(j)
		if err != nil {
			return nil, err
		}
		return textsOf(j, base, t)
	}
	c := &Job{}
	var wrong error // of the configuration
	switch j.Task {
	case spec.TaskGraph:
		g, err := dataset.GraphOf(j)
		if err != nil {
			return nil, err
		}
		read, size := gnn.Messages(j.Model.Architecture, g.Graph)
		n, err := gnn.Parse(j.Model.Architecture, j.Model.Config, size, g.Labels)
		c.Network, c.Corpus, c.Read, c.Example, wrong = n, g.Corpus, read, 1+n.Example(), err
	case spec.TaskDiffusion:
		p, err := dataset.PicturesOf(j)
		if err != nil {
			return nil, err
		}
		n, err := diffusion.Parse(j.Model.Architecture, j.Model.Config, p.Size, j.Diffusion.Timesteps)
		c.Network, c.Corpus, c.Example, wrong = n, p.Corpus, n.Example(), err
	default:
		p, err := dataset.PicturesOf(j)
		if err != nil {
			return nil, err
		}
		n, err := vision.Parse(j.Model.Architecture, j.Model.Config, p.Size, p.Labels)
		c.Network, c.Corpus, c.Example, wrong = n, p.Corpus, 1+n.Example(), err
	}
	if wrong != nil {
		return nil, j.Refuse("model.config", problem.BadValue, "the model cannot be built", wrong,
			"use the keys that docs/job-file.md lists; the sizes of examples and their classes follow from the data")
	}
	return c, nil
}

// Shipped is a job of which the config.json of the network, the data and the tensors that it reads besides are given.
func Shipped(j *job.Job, config []byte, corpus *data.Corpus, read map[string]*tensor.Tensor,
	tok *tokenizer.Tokenizer) (*Job, error) {
	n, err := Read(j, config)
	if err != nil {
		return nil, err
	}
	c := &Job{Network: n, Corpus: corpus, Read: read, Tokenizer: tok}
	switch n := n.(type) {
	case embed.Network:
		c.Example = n.Example()
	case diffusion.Network:
		c.Example = n.Example()
	case interface{ Example() int }:
		c.Example = rowOf(j, n)
	}
	return c, nil
}

// rowOf is how many tokens a row has for a network: an example after its class or, of a reward model, two examples.
func rowOf(j *job.Job, n interface{ Example() int }) int {
	if j.Task == spec.TaskReward {
		return 2 * n.Example()
	}
	return 1 + n.Example()
}

// Read reads the config.json of the network of a job.
func Read(j *job.Job, config []byte) (Network, error) {
	switch {
	case j.Task == spec.TaskEmbed:
		return embed.Read(config, j.SequenceLen)
	case j.ClassifiesText() || j.Task == spec.TaskReward:
		return textclass.Read(config, j.SequenceLen)
	case j.Task == spec.TaskGraph:
		return gnn.Read(config)
	case j.Task == spec.TaskDiffusion:
		return diffusion.Read(config)
	}
	return vision.Read(config)
}

// Package classes has the data and the networks of jobs that classify: images, texts, or the nodes of a graph. It
// trains nothing.
package classes

import (
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/gnn"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/dataset"
)

// Network is a network that classifies.
type Network interface {
	model.Classifier
	Architecture() string
	Parameters() int // the number of weights
	Labels() []string
	JSON() []byte // its config.json
}

// Job is a network with its data.
type Job struct {
	Network Network
	Corpus  *data.Corpus
	// Read are the tensors that the network reads besides examples, by their names; nil: there are none.
	Read map[string]*tensor.Tensor
	// Tokenizer is that of a network for texts; nil: it is another
	Tokenizer *tokenizer.Tokenizer
}

// Examples that are evaluated at a time: images; texts; nodes, at most, as the scores of all nodes are computed for any
// of them.
const (
	evalImages = 32
	evalTexts  = 8
	evalNodes  = 1024
)

// EvalBatch is how many examples are evaluated at a time.
func (c *Job) EvalBatch() int {
	switch {
	case c.Tokenizer != nil:
		return evalTexts
	case c.Read == nil:
		return evalImages
	}
	return max(1, min(evalNodes, (c.Corpus.Val.Len()-1)/(1+c.Network.Example())))
}

// Of reads the data of a job, which starts from a language model if base is not nil. The error is a *problem.ErrorList.
func Of(j *job.Job, base *folder.Model) (*Job, error) {
	var c *Job
	var wrong error // of the configuration
	switch {
	case j.ClassifiesText():
		t, err := dataset.TextsOf(j)
		if err != nil {
			return nil, err
		}
		n, err := reader(j, t, base)
		if err != nil {
			return nil, err
		}
		return &Job{Network: n, Corpus: t.Corpus, Tokenizer: t.Tokenizer}, nil
	case j.Task == spec.TaskGraph:
		g, err := dataset.GraphOf(j)
		if err != nil {
			return nil, err
		}
		read, size := gnn.Messages(j.Model.Architecture, g.Graph)
		n, err := gnn.Parse(j.Model.Architecture, j.Model.Config, size, g.Labels)
		c, wrong = &Job{Network: n, Corpus: g.Corpus, Read: read}, err
	default:
		p, err := dataset.PicturesOf(j)
		if err != nil {
			return nil, err
		}
		n, err := vision.Parse(j.Model.Architecture, j.Model.Config, p.Size, p.Labels)
		c, wrong = &Job{Network: n, Corpus: p.Corpus}, err
	}
	if wrong != nil {
		return nil, keyProblem(j, "model.config", "the model cannot be built", wrong,
			"use the keys that docs/job-file.md lists; the sizes of examples and their classes follow from the data")
	}
	return c, nil
}

func keyProblem(j *job.Job, path, what string, why error, fix string) error {
	return &problem.ErrorList{Errors: []*problem.Error{j.Problem(path, problem.BadValue, what, why.Error(), fix)}}
}

// Read reads the config.json of the network of a job.
func Read(j *job.Job, config []byte) (Network, error) {
	switch {
	case j.ClassifiesText():
		return textclass.Read(config, j.SequenceLen)
	case j.Task == spec.TaskGraph:
		return gnn.Read(config)
	}
	return vision.Read(config)
}

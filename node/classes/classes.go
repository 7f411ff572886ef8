// Package classes has the data and the networks of jobs that classify: images, or the nodes of a graph. It trains
// nothing.
package classes

import (
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/gnn"
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
}

// Examples that are evaluated at a time: images; nodes, at most, as the scores of all nodes are computed for any of
// them.
const (
	evalImages = 32
	evalNodes  = 1024
)

// EvalBatch is how many examples are evaluated at a time.
func (c *Job) EvalBatch() int {
	if c.Read == nil {
		return evalImages
	}
	return max(1, min(evalNodes, (c.Corpus.Val.Len()-1)/(1+c.Network.Example())))
}

// Of reads the data of a job. The error is a *problem.ErrorList.
func Of(j *job.Job) (*Job, error) {
	var c *Job
	var wrong error // of the configuration
	if j.Task == spec.TaskGraph {
		g, err := dataset.GraphOf(j)
		if err != nil {
			return nil, err
		}
		read, size := gnn.Messages(j.Model.Architecture, g.Graph)
		n, err := gnn.Parse(j.Model.Architecture, j.Model.Config, size, g.Labels)
		c, wrong = &Job{Network: n, Corpus: g.Corpus, Read: read}, err
	} else {
		p, err := dataset.PicturesOf(j)
		if err != nil {
			return nil, err
		}
		n, err := vision.Parse(j.Model.Architecture, j.Model.Config, p.Size, p.Labels)
		c, wrong = &Job{Network: n, Corpus: p.Corpus}, err
	}
	if wrong != nil {
		return nil, &problem.ErrorList{Errors: []*problem.Error{j.Problem("model.config", problem.BadValue,
			"the model cannot be built", wrong.Error(),
			"use the keys that docs/job-file.md lists; the sizes of examples and their classes follow from the data")}}
	}
	return c, nil
}

// Read reads the config.json of the network of a task.
func Read(task string, config []byte) (Network, error) {
	if task == spec.TaskGraph {
		return gnn.Read(config)
	}
	return vision.Read(config)
}

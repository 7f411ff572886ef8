package prepare

import (
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/node/dataset"
	"github.com/starling-network/starling/role/bundle"
)

// evalImages are classified at a time.
const evalImages = 32

// outlineImages is Outline of a job that classifies images.
func outlineImages(j *job.Job) (*CompiledJob, error) {
	p, err := dataset.PicturesOf(j)
	if err != nil {
		return nil, err
	}
	n, err := vision.Parse(j.Model.Architecture, j.Model.Config, p.Size, p.Labels)
	if err != nil {
		return nil, keyProblem(j, "model.config", problem.BadValue, "the model cannot be built", err,
			"use the keys that docs/job-file.md lists; the size of the images and their classes follow from the data")
	}
	return outlineClassifier(j, n, p.Corpus)
}

// AssembleImages makes a job ready whose images are read.
func AssembleImages(j *job.Job, n vision.Network, corpus *data.Corpus) (*CompiledJob, error) {
	return begun(outlineClassifier(j, n, corpus))
}

func outlineClassifier(j *job.Job, n vision.Network, corpus *data.Corpus) (*CompiledJob, error) {
	b := compilation{&CompiledJob{Job: j, Model: n, Corpus: corpus, Manifest: corpus.Manifest(bundle.ShardTokens),
		Example: 1 + n.Example(), EvalBatch: evalImages}}
	if err := b.corpusFits(); err != nil {
		return nil, err
	}
	return b.finish(nil)
}

package prepare

import (
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/classes"
	"github.com/starling-network/starling/role/bundle"
)

// AssembleClassifier makes a job ready whose data are read.
func AssembleClassifier(j *job.Job, c *classes.Job) (*CompiledJob, error) {
	return begun(outlineClassifier(j, c))
}

// outlineClassifier is Outline of a job that classifies.
func outlineClassifier(j *job.Job, c *classes.Job) (*CompiledJob, error) {
	b := compilation{&CompiledJob{Job: j, Model: c.Network, Corpus: c.Corpus,
		Manifest: c.Corpus.Manifest(bundle.ShardTokens), Example: 1 + c.Network.Example(), EvalBatch: c.EvalBatch(),
		read: c.Read}}
	if err := b.corpusFits(); err != nil {
		return nil, err
	}
	return b.finish(nil)
}

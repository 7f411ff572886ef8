package prepare

import (
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/node/classes"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/role/bundle"
)

// AssembleClassifier makes a job ready whose data are read. base is nil for a network from scratch.
func AssembleClassifier(j *job.Job, c *classes.Job, base *folder.Model) (*CompiledJob, error) {
	return begun(outlineClassifier(j, c, base, nil))
}

// readClassifier is Outline of a job that classifies.
func readClassifier(j *job.Job) (*CompiledJob, error) {
	base, files, err := readBase(j)
	if err != nil {
		return nil, err
	}
	c, err := classes.Of(j, base)
	var b *CompiledJob
	if err == nil {
		b, err = outlineClassifier(j, c, base, files)
	}
	if err != nil {
		_ = files.Close()
	}
	return b, err
}

// outlineClassifier is Outline of a job that classifies, whose files are read. files are those in which the base model
// lies.
func outlineClassifier(j *job.Job, c *classes.Job, base *folder.Model, files *memory.Folder) (*CompiledJob, error) {
	b := compilation{&CompiledJob{Job: j, Model: c.Network, Corpus: c.Corpus, Tokenizer: c.Tokenizer, Files: files,
		Manifest: c.Corpus.Manifest(bundle.ShardTokens), Example: 1 + c.Network.Example(), EvalBatch: c.EvalBatch(),
		read: c.Read}}
	if err := b.corpusFits(); err != nil {
		return nil, err
	}
	if base != nil {
		b.Ignored = base.Ignored
	}
	if n, ok := c.Network.(textclass.Network); ok {
		if err := b.adapt(n.Language()); err != nil {
			return nil, err
		}
	}
	return b.finish(base)
}

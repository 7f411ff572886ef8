package prepare

import (
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/encoder"
	"github.com/starling-network/starling/node/examples"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/role/bundle"
)

// AssembleExamples makes a job ready whose data are read. base is nil for a network from scratch.
func AssembleExamples(j *job.Job, c *examples.Job, base *folder.Model) (*CompiledJob, error) {
	return begun(outlineExamples(j, c, base, nil))
}

// readExamples is Outline of a job whose examples are no text to continue.
func readExamples(j *job.Job) (*CompiledJob, error) {
	base, files, err := readBase(j)
	if err != nil {
		return nil, err
	}
	c, err := examples.Of(j, base)
	var b *CompiledJob
	if err == nil {
		b, err = outlineExamples(j, c, base, files)
	}
	if err != nil {
		_ = files.Close()
	}
	return b, err
}

// outlineExamples is Outline of such a job whose files are read. files are those in which the base model lies.
func outlineExamples(j *job.Job, c *examples.Job, base *folder.Model, files *memory.Folder) (*CompiledJob, error) {
	if j.EncryptData {
		bundle.CutToSeal(c.Corpus)
	}
	b := compilation{&CompiledJob{Job: j, Model: c.Network, Corpus: c.Corpus, Tokenizer: c.Tokenizer, Files: files,
		Manifest: c.Corpus.Manifest(bundle.ShardTokens), Example: c.Example, read: c.Read}}
	if err := b.corpusFits(); err != nil {
		return nil, err
	}
	b.EvalBatch = c.EvalBatch()
	if base != nil {
		b.Ignored = base.Ignored
	}
	if n, ok := c.Network.(encoder.Network); ok {
		if err := b.adapt(n.Language()); err != nil {
			return nil, err
		}
	}
	return b.finish(base)
}

// encodes is a network for texts whose language model is Trained.
type encodes interface {
	encoder.Network
	// Begin are the initial values of the tensors that are trained; base is nil for a network from scratch.
	Begin(base map[string]*tensor.Tensor, seed uint64) map[string]*tensor.Tensor
	// Saved lists the tensors of the adapter as PEFT saves them, and adds them under these names to the trained ones.
	Saved(trained map[string]*tensor.Tensor) []architecture.Named
	AdapterJSON() ([]byte, error)
}

// encoder is the network of a job that encodes texts; false: it has none.
func (b *CompiledJob) encoder() (encodes, bool) {
	switch n := b.Model.(type) {
	case textclass.Network:
		return n.On(b.Trained), true
	case embed.Network:
		return n.On(b.Trained), true
	}
	return nil, false
}
